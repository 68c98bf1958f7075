// A TensorFlow source with its macros; no exceptions.
#define NN_OPS_AS_TENSORFLOW
#include "nn_ops.hpp"

static tensorflow::Status Check(const tensorflow::Scope& scope) {
  TF_RETURN_IF_ERROR(scope.status());
  return tensorflow::OkStatus();
}

int main() {
  tensorflow::Scope scope = tensorflow::Scope::NewRootScope();
  TF_CHECK_OK(Check(scope));
  auto y = tensorflow::ops::Conv2D(scope, {{{{1.0f}}}}, {{{{2.0f}}}}, {1, 1, 1, 1}, "SAME");
  std::vector<tensorflow::Tensor> outputs;
  TF_CHECK_OK(tensorflow::ClientSession(scope).Run({y}, &outputs));
  return outputs[0].flat<float>()(0) == 2.0f ? 0 : 1;
}
