package opgen.types.family;

/** Any tensor of numbers. */
public interface TNumber extends TType {
}
