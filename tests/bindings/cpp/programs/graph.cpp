// Scopes, sessions and the memory of results.
#include <set>
#include <thread>

#include "nn_ops.hpp"

#include "check.hpp"

using namespace nn_ops;

static Tensor Filled(const TensorShape& shape, float value) {
  Tensor made(DT_FLOAT, shape);
  made.flat<float>().setConstant(value);
  return made;
}

static ops::Conv2D Next(const Scope& scope, Input x) { return {scope, x, {{{{1.0f}}}}, {1, 1, 1, 1}, "SAME"}; }

static void Names() {
  const Scope root = Scope::NewRootScope();
  const auto a = ops::Const(root, 1.0f), b = ops::Const(root, 1.0f), c = ops::Const(root.WithOpName("c"), 1);
  const auto d = ops::Const(root.WithOpName("c"), 1), e = ops::Const(root.NewSubScope("s").WithOpName("c"), 1);
  const auto f = ops::Const(root.NewSubScope("s").NewSubScope("t"), 1), g = ops::Const(root.WithOpName("c_1"), 1);
  CHECK_TEXT(a.node()->name() + " " + b.node()->name(), "Const Const_1");
  CHECK_TEXT(c.name() + " " + d.name() + " " + g.name(), "c:0 c_1:0 c_1_1:0");
  CHECK_TEXT(e.node()->name() + " " + f.node()->name(), "s/c s_1/t/Const");
}

static void Errors() {
  const Scope root = Scope::NewRootScope();
  const auto x = ops::Const(root, 1.0f, {1, 1, 1, 1});
  const auto bad = ops::Conv2D(root.WithOpName("bad"), x, x, {2, 1, 1, 1}, "SAME");
  const auto after = Next(root, bad);
  const auto worse = ops::Conv2D(root.WithOpName("worse"), x, x, {1, 1, 1, 1}, "same");
  CHECK(!root.ok() && root.errors().size() == 2 && after.node() == nullptr && worse.output.node() == nullptr);
  const char* first =
      "Conv2D: argument 'strides': expected 1 for the batch and channel dimensions, given [2, 1, 1, 1] (node 'bad')";
  CHECK_TEXT(root.status().message(), first);
  CHECK(root.status().code() == error::INVALID_ARGUMENT);
  CHECK_TEXT(root.errors()[1].ToString(),
             "INVALID_ARGUMENT: Conv2D: argument 'padding': expected one of SAME, VALID, EXPLICIT (did you mean "
             "'SAME'?), given 'same' (node 'worse')");
  std::vector<Tensor> outputs;
  CHECK_TEXT(ClientSession(root).Run({x}, &outputs).message(), first);

  const Scope other = Scope::NewRootScope();
  Next(other, x);
  CHECK_TEXT(other.status().message(), "Conv2D: 'Const:0' belongs to another graph (node 'Conv2D')");
  const Scope third = Scope::NewRootScope();
  Next(third, Output());
  CHECK_TEXT(third.status().message(), "Conv2D: an input is no output of any node (node 'Conv2D')");
  const Scope fourth = Scope::NewRootScope();
  ops::Const(fourth, {{1.0f, 2.0f}, {3.0f}});
  CHECK_TEXT(fourth.status().message(), "the parts of a list have different types or shapes (node 'Const')");
  const Scope fifth = Scope::NewRootScope();
  ops::Const(fifth, {1.0f, 2.0f}, {3});
  CHECK_TEXT(fifth.status().message(), "2 values for a tensor of shape [3] (node 'Const')");
}

static void Feeds() {
  const Scope root = Scope::NewRootScope();
  const auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT, ops::Placeholder::Shape({1, -1, 2, 1}));
  const auto y = Next(root.WithOpName("y"), x), z = Next(root.WithOpName("z"), y);
  const auto free = ops::Placeholder(root.WithOpName("free"), DT_FLOAT);
  const auto late = Next(root.WithOpName("late"), free);
  const ClientSession session(root);
  std::vector<Tensor> outputs;
  CHECK_TEXT(session.Run({y}, &outputs).message(),
             "Placeholder: expected float32[1, ?, 2, 1] to be fed, given nothing (node 'x')");
  CHECK_TEXT(session.Run({{x, Filled({1, 2, 3, 1}, 1)}}, {y}, &outputs).message(),
             "Placeholder: expected float32[1, ?, 2, 1] to be fed, given float32[1, 2, 3, 1] (node 'x')");
  CHECK_TEXT(session.Run({{x, 3}}, {y}, &outputs).message(),
             "Placeholder: expected float32[1, ?, 2, 1] to be fed, given int32[] (node 'x')");
  CHECK_TEXT(session.Run({{free, 3.0f}}, {late}, &outputs).message(),
             "Conv2D: argument 'input': expected a tensor of rank 4, given shape [] (node 'late')");
  CHECK_TEXT(session.Run({Output()}, &outputs).message(), "an output without a node can be neither fed nor fetched here");
  CHECK_TEXT(session.Run({ops::Const(Scope::NewRootScope(), 1)}, &outputs).message(),
             "'Const:0' of another graph can be neither fed nor fetched here");
  // What is fed is not worked out: y is given, so x need not be.
  CHECK(session.Run({{y, Filled({1, 1, 1, 1}, 7)}}, {z, y, z}, &outputs).ok());
  CHECK(outputs.size() == 3 && outputs[0].flat<float>()(0) == 7 && outputs[1].flat<float>()(0) == 7);
  CHECK(session.Run({{x, Filled({1, 1, 2, 1}, 7)}}, {x}, {z.operation}, &outputs).ok() && outputs.size() == 1);
}

static void Memory() {
  const Scope root = Scope::NewRootScope();
  const auto x = ops::Placeholder(root, DT_FLOAT);
  Output last = x;
  for (int i = 0; i < 6; ++i) last = Next(root, last);
  const ClientSession session(root);
  const Tensor value = Filled({1, 64, 64, 1}, 2);
  std::vector<Tensor> kept, outputs;
  CHECK(session.Run({{x, value}}, {last}, &kept).ok());
  for (int i = 0; i < 5; ++i) {
    CHECK(session.Run({{x, Filled({1, 64, 64, 1}, 3)}}, {last}, &outputs).ok());
    CHECK(!outputs[0].SharesBufferWith(kept[0]) && outputs[0].data() != kept[0].data());
    CHECK(kept[0].flat<float>()(5) == 2 && outputs[0].flat<float>()(5) == 3);
  }
  std::set<const void*> places;  // what nobody holds is used again
  for (int i = 0; i < 20; ++i) {
    outputs.clear();
    CHECK(session.Run({{x, value}}, {last}, &outputs).ok());
    places.insert(outputs[0].data());
  }
  CHECK(places.size() <= 3);
}

static Tensor OutlivesItsSession() {
  const Scope root = Scope::NewRootScope();
  std::vector<Tensor> outputs;
  const Output y = Next(root, Filled({1, 8, 8, 1}, 4));
  CHECK(ClientSession(root).Run({y}, &outputs).ok());
  return outputs[0];
}

static Output OutlivesItsScope() { return Next(Scope::NewRootScope(), Filled({1, 8, 8, 1}, 4)); }

static void Threads() {
  const Scope root = Scope::NewRootScope();
  const auto x = ops::Placeholder(root, DT_FLOAT);
  const auto y = Next(root, Next(root, x));
  const ClientSession session(root);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&session, &x, &y, t] {
      std::vector<Tensor> outputs;
      for (int i = 1; i < 50; ++i) {
        const float value = static_cast<float>(t * 100 + i);
        CHECK(session.Run({{x, Filled({1, i, 3, 1}, value)}}, {y}, &outputs).ok());
        CHECK(outputs[0].dim_size(1) == i);
        for (const float found : outputs[0].flat<float>()) CHECK(found == value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

static void Deep() {
  const Scope root = Scope::NewRootScope();
  const auto filter = ops::Const(root, 1.0f, {1, 1, 1, 1});
  Output last = ops::Const(root, 5.0f, {1, 1, 1, 1});
  for (int i = 0; i < 20000; ++i) last = ops::Conv2D(root, last, filter, {1, 1, 1, 1}, "SAME");
  std::vector<Tensor> outputs;
  CHECK(ClientSession(root).Run({last}, &outputs).ok());
  CHECK(outputs[0].flat<float>()(0) == 5);
}

int main() {
  Names();
  Errors();
  Feeds();
  Memory();
  CHECK(OutlivesItsSession().flat<float>()(63) == 4);
  CHECK_TEXT(OutlivesItsScope().name(), "Conv2D:0");
  Threads();
  Deep();
  return 0;
}
