package opgen.legacy.op;

/** A call of an op. */
public interface Op {}
