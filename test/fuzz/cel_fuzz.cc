// Selectors: no text crashes the compiler, no program the evaluator; answers repeat, and a cost
// limit above the cost changes nothing.
#include "cel/program.h"
#include "target.h"

using namespace nos;  // NOLINT

namespace {

const cel::Device& Sample() {
  static const cel::Device device([] {
    cel::DeviceSpec spec;
    spec.driver = "dra.example.com";
    spec.attributes = {{"b", true},
                       {"i", int64_t{7}},
                       {"s", std::string("fish")},
                       {"v", cel::Version{"1.2.3-rc.1"}},
                       {"l", std::vector<int64_t>{1, 2, 3}},
                       {"other.com/x", std::vector<std::string>{"a", "b"}}};
    spec.capacity = {{"m", "80Gi"}, {"n", "1.5"}};
    return spec;
  }());
  return device;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto program = cel::Program::Compile(FuzzText(data, size));
  if (!program.ok()) {
    Require(program.status().code() == Code::kInvalid, "a refused expression is invalid");
    return 0;
  }
  cel::EvaluateOptions options;
  options.max_cost = 10'000;
  const cel::Evaluation first = (*program)->Evaluate(Sample(), options);
  const bool failed = first.failure != cel::Failure::kNone;
  Require(failed == !first.error.empty(), "a failure has a text");
  Require(!failed || !first.matches, "a device that fails does not match");
  const cel::Evaluation again = (*program)->Evaluate(Sample(), options);
  Require(again.matches == first.matches && again.cost == first.cost && again.error == first.error,
          "answers repeat");
  if (first.cost <= options.max_cost) {
    options.max_cost = first.cost;
    const cel::Evaluation tight = (*program)->Evaluate(Sample(), options);
    Require(tight.failure == first.failure && tight.cost == first.cost,
            "a limit equal to the cost changes nothing");
  }
  return 0;
}
