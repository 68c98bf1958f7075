package opgen;

import opgen.internal.Step;

/** A call of an op that has run. */
final class EagerOperation extends AbstractOperation {
  EagerOperation(EagerSession session, Step step) {
    super(session, step);
  }
}
