package opgen.types.family;

/** Any tensor of integers. */
public interface TIntegral extends TNumber {
}
