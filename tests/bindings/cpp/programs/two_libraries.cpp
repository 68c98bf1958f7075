// Two generated libraries in one program.
#include "nn_ops.hpp"
#include "samples.hpp"

#include "check.hpp"

int main() {
  const auto a = nn_ops::conv2d(nn_ops::Tensor({2.0f}, {1, 1, 1, 1}), nn_ops::Tensor({3.0f}, {1, 1, 1, 1}), {1, 1, 1, 1}, "SAME");
  const auto b = samples::mat_mul(samples::Tensor({2.0f}, {1, 1}), samples::Tensor({3.0f}, {1, 1}));
  CHECK(a.ok() && a->flat<float>()(0) == 6);
  CHECK_TEXT(b.status().ToString(), "OK");
  CHECK(b->flat<float>()(0) == 6);
  return 0;
}
