package opgen.types.family;

/** Any tensor of floating numbers. */
public interface TFloating extends TNumber {
}
