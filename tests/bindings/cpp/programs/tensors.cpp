// Tensors, scalar types, and calls without a graph.
#include <cmath>

#include "nn_ops.hpp"

#include "check.hpp"

using namespace nn_ops;

template <typename Function>
static std::string Thrown(Function function) {
  try {
    function();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "nothing";
}

// Every 16-bit pattern survives the way to float and back; halfway between neighbours the even one is taken.
template <typename T>
static void Conversions(int mantissa) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const T value = T::FromBits(static_cast<std::uint16_t>(bits));
    const float wide = value;
    if (std::isnan(wide)) {
      CHECK(std::isnan(static_cast<float>(T(wide))));
      continue;
    }
    CHECK(T(wide).bits == bits);
    const std::uint32_t next = bits + 1, infinity = ((0x8000u >> mantissa) - 1) << mantissa;
    if ((bits & 0x7fffu) >= infinity - 1) continue;
    const float above = T::FromBits(static_cast<std::uint16_t>(next));
    const float middle = static_cast<float>((static_cast<double>(wide) + static_cast<double>(above)) / 2);
    CHECK(T(middle).bits == ((bits & 1u) != 0 ? next : bits));
    CHECK(T(std::nextafter(middle, wide)).bits == bits);
    CHECK(T(std::nextafter(middle, above)).bits == next);
  }
  CHECK(std::isinf(static_cast<float>(T(3.4e38f * 2))));
}

static void Elements() {
  Tensor t({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
  CHECK(t.matrix<float>()(1, 0) == 4 && t.flat<float>()(5) == 6 && t.flat<float>().size() == 6);
  const Tensor same = t;
  t.matrix<float>()(1, 0) = 9;
  CHECK(same.flat<float>()(3) == 9 && same.SharesBufferWith(t) && !t.RefCountIsOne());
  CHECK(Tensor(2.5).scalar<double>()() == 2.5 && Tensor(2.5).dims() == 0);
  CHECK(Tensor({1, 2, 3}).dtype() == DT_INT32 && Tensor(DT_BFLOAT16, {2, 0}).TotalBytes() == 0);
  CHECK(Tensor().NumElements() == 0 && Tensor().dtype() == DT_FLOAT);
  float mine[4] = {1, 2, 3, 4};
  const Tensor borrowed = Tensor::Borrowed(mine, {2, 2});
  mine[3] = 8;
  CHECK((borrowed.tensor<float, 2>()(1, 1)) == 8);
  CHECK_TEXT(t.DebugString(), "Tensor<type: float32 shape: [2, 3]>");
  CHECK_TEXT(Thrown([&] { t.flat<double>(); }), "Tensor<type: float32 shape: [2, 3]> was read as float64");
  CHECK_TEXT(Thrown([&] { t.vec<float>(); }), "Tensor<type: float32 shape: [2, 3]> was read with 1 dimensions");
  CHECK_TEXT(Thrown([] { Tensor({1, 2}, {3}); }), "2 values for a tensor of shape [3]");
  CHECK_TEXT(Thrown([] { Tensor(DT_FLOAT, {-1}); }), "no tensor has the shape [?]");
  CHECK_TEXT(Tensor::Make(DT_INVALID, {1}).status().message(), "no tensor has DT_INVALID for its type");
  CHECK_TEXT(Tensor::Make(DT_FLOAT, {1ll << 40, 1ll << 40}).status().message(),
             "no tensor has the shape [1099511627776, 1099511627776]");
  CHECK(Tensor::Make(DT_FLOAT, {1ll << 40, 1ll << 19}).status().code() == error::RESOURCE_EXHAUSTED);
}

static void Direct() {
  const Tensor image({1.0f, 2.0f, 3.0f, 4.0f}, {1, 2, 2, 1}), taps({1.0f, 1.0f, 1.0f, 1.0f}, {2, 2, 1, 1});
  const StatusOr<Tensor> made = conv2d(image, taps, {1, 1, 1, 1}, "VALID");
  CHECK(made.ok() && made->flat<float>()(0) == 10);
  CHECK((*conv2d(image, taps, {1, 1, 1, 1}, "SAME", ops::Conv2D::Dilations({1, 2, 2, 1}))).NumElements() == 4);
  const auto wrong = conv2d(image, taps, {1, 1, 1, 1}, std::string_view("SAME\0X", 6));
  CHECK_TEXT(wrong.status().message(),
             "Conv2D: argument 'padding': expected one of SAME, VALID, EXPLICIT (did you mean 'SAME'?), given 'SAME\\x00X'");
  CHECK(conv2d(image, taps, {1, 1, 1, 1}, std::string_view("VALIDATED", 5)).ok());  // no NUL where the word ends
  CHECK_TEXT(Thrown([&] { wrong.value(); }), "no value: " + wrong.status().ToString());
  CHECK_TEXT(conv2d(image, taps, {}, "SAME").status().message().substr(0, 26), "Conv2D: argument 'strides'");
  CHECK_TEXT(conv2d(Tensor(), taps, {1, 1, 1, 1}, "SAME").status().message(),
             "Conv2D: argument 'input': expected a tensor of rank 4, given shape [0]");

  // Attributes own what they were given.
  const auto attrs = ops::Conv2D::Attrs().Dilations(std::vector<int>{1, 1, 1, 1}).DataFormat(std::string("NHWC"));
  Tensor out;
  CHECK(conv2d(image, taps, {1, 1, 1, 1}, "VALID", attrs, &out).ok());
  const void* place = out.data();
  out.flat<float>().setZero();
  CHECK(conv2d(image, taps, {1, 1, 1, 1}, "VALID", attrs, &out).ok());
  CHECK(out.data() == place && out.flat<float>()(0) == 10);  // in place
  const Tensor shared = out;
  const Tensor ones({1.0f, 1.0f, 1.0f, 1.0f}, {1, 2, 2, 1});
  CHECK(conv2d(ones, taps, {1, 1, 1, 1}, "VALID", attrs, &out).ok());
  CHECK(out.flat<float>()(0) == 4 && !out.SharesBufferWith(shared));
  Tensor image_too = image;
  CHECK(conv2d(image_too, Tensor({2.0f}, {1, 1, 1, 1}), {1, 1, 1, 1}, "SAME", attrs, &image_too).ok());
  CHECK(image_too.flat<float>()(3) == 8 && image.flat<float>()(3) == 4 && shared.flat<float>()(0) == 10);
  // A list of pads in a word's place; either of two names, not both.
  CHECK(depthwise_conv2d(image, taps, {1, 1, 1, 1}, {0, 0, 1, 1, 1, 1, 0, 0})->dim_size(1) == 3);
  using Attrs = ops::depthwise_conv2d::Attrs;
  CHECK(depthwise_conv2d(image, taps, {1, 1, 1, 1}, "SAME", Attrs().Rate({1, 1})).ok());
  CHECK(depthwise_conv2d(image, taps, {1, 1, 1, 1}, "SAME", Attrs().Dilations({1, 1})).ok());
  CHECK(!depthwise_conv2d(image, taps, {1, 1, 1, 1}, "SAME", Attrs().Dilations({1, 1}).Rate({1, 1})).ok());
}

int main() {
  Conversions<half>(10);
  Conversions<bfloat16>(7);
  Elements();
  Direct();
  return 0;
}
