// Types of at most 8 bits: `small_types FLOATS ANSWERS` writes, for each type in the order of its table, the float of
// each byte, then the bits of each of the floats of a file, then a call's results on all bytes.
#include <fstream>

#include "small_types.hpp"

#include "../cpp/programs/check.hpp"

using namespace small_types;

static std::vector<float> given;
static std::ofstream answers;

template <typename T>
static void Write(const T& value) {
  answers.write(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
static void Type(const std::string& name) {
  static_assert(sizeof(T) == 1, "a byte an element");
  std::vector<T> all;
  for (int i = 0; i < 256; ++i) {
    all.push_back(T::FromBits(static_cast<std::uint8_t>(i)));
    Write(static_cast<float>(all.back()));
  }
  for (const float value : given) Write(T(value).bits);
  const Tensor x = Tensor::Of<T>(all, {256});
  CHECK_TEXT(x.DebugString(), "Tensor<type: " + name + " shape: [256]>");
  CHECK(x.TotalBytes() == 256 && DataTypeToEnum<T>::value == x.dtype() && DataTypeString(x.dtype()) == name);
  const Tensor ones = Tensor::Of<float>(std::vector<float>(256, 1.0f), {256});
  const StatusOr<Tensor> same = scaled(x, ones);
  CHECK(same.ok() && same->dtype() == x.dtype());
  for (int i = 0; i < 256; ++i) Write(same->template flat<T>()(i).bits);
  CHECK_TEXT(scaled(ones, x).status().message(),
             "Scaled: argument 'by': expected float32, given " + name + "[256]");
  Tensor zeros(x.dtype(), {2});
  zeros.flat<T>()(1) = T(1);
  CHECK(zeros.flat<T>()(0).bits == 0);
  CHECK(std::is_floating_point<decltype(zeros.flat<T>()(1) + 1.0f)>::value);
}

int main(int, char** arguments) {
  std::ifstream file(arguments[1], std::ios::binary);
  for (float value; file.read(reinterpret_cast<char*>(&value), sizeof value);) given.push_back(value);
  answers.open(arguments[2], std::ios::binary);
  Type<int4>("int4");
  Type<uint4>("uint4");
  Type<int2>("int2");
  Type<uint2>("uint2");
  Type<float8_e4m3fn>("float8_e4m3fn");
  Type<float8_e4m3fnuz>("float8_e4m3fnuz");
  Type<float8_e5m2>("float8_e5m2");
  Type<float8_e5m2fnuz>("float8_e5m2fnuz");
  Type<float8_e8m0fnu>("float8_e8m0fnu");
  Type<float4_e2m1fn>("float4_e2m1fn");
  CHECK(int4(-9).bits == 7 && int4(std::uint64_t{1} << 63).bits == 0 && uint2(true) == 1);
  CHECK(DT_FLOAT8_E5M2 == 24 && DT_FLOAT4_E2M1FN == 33 && DT_INT4 == 29);
  return 0;
}
