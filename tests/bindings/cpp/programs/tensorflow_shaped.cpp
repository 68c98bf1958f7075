// Sources as they are written for TensorFlow; only the include and the alias differ.
#include "nn_ops.hpp"

#include "check.hpp"

namespace tensorflow = nn_ops;

namespace user {

using tensorflow::ClientSession;
using tensorflow::Input;
using tensorflow::Output;
using tensorflow::Scope;
using tensorflow::Status;
using tensorflow::Tensor;
namespace ops = tensorflow::ops;

// The call that every user of the generated header knows.
Output Gradient(const Scope& scope, Input input, Input filter, Input out_backprop) {
  return ops::Conv2DBackpropInputV2(scope, input, filter, out_backprop, {1, 2, 2, 1}, "SAME",
                                    ops::Conv2DBackpropInputV2::Attrs().DataFormat("NHWC").Dilations({1, 1, 1, 1}));
}

Status Train(std::vector<Tensor>* outputs) {
  Scope root = Scope::NewRootScope();
  Scope layer = root.NewSubScope("layer");
  auto x = ops::Placeholder(root.WithOpName("x"), tensorflow::DT_FLOAT, ops::Placeholder::Shape({-1, 4, 4, 2}));
  auto filter = ops::Const(layer.WithOpName("filter"), 0.5f, {3, 3, 2, 3});
  auto conv = ops::Conv2D(layer.WithOpName("conv"), x, filter, {1, 2, 2, 1}, "SAME",
                          ops::Conv2D::UseCudnnOnGpu(false).DataFormat("NHWC"));
  auto dx = Gradient(layer, x, filter, conv);
  auto df = ops::Conv2DBackpropFilter(layer, x, {3, 3, 2, 3}, conv.output, {1, 2, 2, 1}, "SAME");
  auto padded = ops::Conv2D(layer, x, filter, {1, 1, 1, 1}, "EXPLICIT",
                            ops::Conv2D::ExplicitPaddings({0, 0, 1, 1, 1, 1, 0, 0}));
  if (!root.ok()) return root.status();

  CHECK_TEXT(x.node()->name(), "x");
  CHECK_TEXT(filter.node()->name(), "layer/filter");
  CHECK_TEXT(conv.node()->name(), "layer/conv");
  CHECK_TEXT(padded.operation.node()->name(), "layer/Conv2D");
  CHECK(conv.output.type() == tensorflow::DT_FLOAT);
  CHECK(padded.output.op() == padded.operation);

  Tensor value(tensorflow::DT_FLOAT, tensorflow::TensorShape({1, 4, 4, 2}));
  value.flat<float>().setConstant(1.0f);
  ClientSession session(root);
  return session.Run({{"x" == x.node()->name() ? x.output : x, value}}, {conv, dx, df, padded}, outputs);
}

}  // namespace user

int main() {
  using namespace tensorflow;
  std::vector<Tensor> outputs;
  const Status status = user::Train(&outputs);
  CHECK_TEXT(status.ToString(), "OK");
  CHECK(outputs.size() == 4);
  auto conv = outputs[0].tensor<float, 4>();
  CHECK(outputs[0].shape() == TensorShape({1, 2, 2, 3}));
  CHECK(conv(0, 0, 0, 0) == 9.0f && conv(0, 0, 1, 2) == 6.0f && conv(0, 1, 1, 1) == 4.0f);
  auto dx = outputs[1].tensor<float, 4>();
  CHECK(dx.dimension(3) == 2);
  CHECK(dx(0, 0, 0, 0) == 0.5f * 3 * 9 && dx(0, 3, 3, 1) == 0.5f * 3 * 4);
  CHECK(outputs[2].shape() == TensorShape({3, 3, 2, 3}));
  CHECK((outputs[2].tensor<float, 4>()(0, 0, 0, 0)) == 9 + 6 + 6 + 4);
  CHECK((outputs[3].tensor<float, 4>()(0, 1, 1, 0)) == 9.0f);

  // Literals in an input's place, of several types; a cast by the template argument's name only.
  const Scope scope = Scope::NewRootScope();
  auto one = ops::Conv2D(scope, {{{{1.0, 2.0}, {3.0, 4.0}}}}, {{{{2.0}, {1.0}}}}, {1, 1, 1, 1}, "VALID");
  auto two = ops::Conv2D(scope.WithOpName("number", 2), Input::Initializer(half(2.0f), {1, 1, 1, 1}), Tensor({half(3)}, {1, 1, 1, 1}),
                         {1, 1, 1, 1}, "SAME");
  auto three = ops::Conv2DBackpropInput(scope, {1, 2, 2, 1}, ops::Const(scope, {1, 2, 3, 4}, {2, 2, 1, 1}),
                                        ops::Const(scope, {{{{5}}}}), {1, 1, 1, 1}, "VALID");
  CHECK_TEXT(scope.status().ToString(), "OK");
  ClientSession session(scope);
  CHECK(session.Run({one.output, two, three}, &outputs).ok());
  CHECK(outputs[0].flat<double>()(1) == 10.0);
  CHECK(outputs[1].dtype() == DT_HALF && static_cast<float>(outputs[1].flat<half>()(0)) == 6.0f);
  CHECK(outputs[2].flat<int32>()(3) == 20);
  CHECK_TEXT(two.node()->name(), "number2");
  CHECK_TEXT(one.node()->output_shape(0).DebugString(), "[1, 1, 2, 1]");
  return 0;
}
