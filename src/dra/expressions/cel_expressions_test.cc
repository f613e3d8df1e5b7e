// Selectors and derived attributes of devices, read from slices.
#include "dra/cel_expressions.h"

#include <gtest/gtest.h>

#include <string>

#include "codec/json.h"
#include "dra/allocator.h"

namespace nos::dra {
namespace {

ResourceSlice SliceOf(const std::string& devices, const std::string& driver = "gpu.example.com") {
  ResourceSlice slice;
  const Status status = ReadResourceSlice(
      *ParseJson(
          R"({"metadata": {"name": "s"}, "spec": {"driver": ")" + driver +
          R"(", "nodeName": "n1", "pool": {"name": "p", "resourceSliceCount": 1}, "devices": [)" +
          devices + "]}}"),
      slice);
  EXPECT_TRUE(status.ok()) << status.message();
  return slice;
}

constexpr const char* kGpu = R"({"name": "gpu-0", "attributes": {
    "model": {"string": "H100"}, "index": {"int": 3}, "healthy": {"bool": true},
    "driverVersion": {"version": "570.86.15"}, "resource.kubernetes.io/pcieRoot": {"string": "pci0"},
    "links": {"strings": ["x", "y"]}, "numbers": {"ints": [1, 2]}, "flags": {"bools": [true]},
    "versions": {"versions": ["1.0.0"]}},
    "capacity": {"memory": {"value": "80Gi"}, "share": {"value": "1500m"}}})";

// "yes", "no", or the code of the error.
std::string Ask(const std::string& expression, const std::string& device = kGpu,
                const CelExpressions& expressions = CelExpressions()) {
  const ResourceSlice slice = SliceOf(device);
  const Result<bool> answer = expressions.Matches(expression, slice, slice.devices.front());
  if (!answer.ok()) return std::string(CodeName(answer.status().code()));
  return *answer ? "yes" : "no";
}

struct Case {
  const char* expression;
  const char* answer;
};

// 64 devices that an expression of high cost tells apart.
TEST(CelExpressionsTest, CostlyExpressionsUseUpTheStepsOfASearch) {
  std::string devices;
  for (int i = 0; i < 64; ++i) {
    devices += std::string(i == 0 ? "" : ",") + R"({"name": "d)" + std::to_string(i) +
               R"(", "attributes": {"id": {"int": )" + std::to_string(i) + "}}}";
  }
  const auto expressions = std::make_shared<CelExpressions>();
  Inventory inventory(Features::Of(37), *expressions);
  inventory.PutSlice(std::make_shared<ResourceSlice>(SliceOf(devices)));
  cluster::Node node;
  node.meta.name = "n1";
  std::string numbers = "[0";
  for (int i = 1; i < 40; ++i) numbers += ", " + std::to_string(i);
  numbers += "]";
  auto claim = std::make_shared<ResourceClaim>();
  claim->uid = "c";
  DeviceRequest& request = claim->requests.emplace_back();
  request.name = "r";
  request.exactly.emplace();
  request.exactly->mode = "ExactCount";
  request.exactly->count = 1;
  request.exactly->device_class = "any";
  request.exactly->selectors = {"device.attributes['gpu.example.com'].id >= 0 && " + numbers +
                                ".all(a, " + numbers + ".all(b, " + numbers +
                                ".all(c, a + b + c >= 0)))"};
  const PreparedClaims prepared(
      {claim}, [](const std::string&) { return std::make_shared<DeviceClass>(); },
      inventory.features());
  AllocationOptions options;
  options.max_steps = 20'000;
  AllocationOutcome outcome = Allocate(inventory, prepared, node, options);
  EXPECT_EQ(outcome.kind, AllocationOutcome::Kind::kStepsExhausted);
  const int64_t evaluated = expressions->counts().evaluated;
  EXPECT_GT(evaluated, 0);
  EXPECT_LT(evaluated, 10) << "an evaluation takes thousands of steps";
  EXPECT_GT(outcome.steps, options.max_steps);
  // Answers are remembered, so the pod gets its device in the end.
  for (int i = 0; i < 64 && outcome.kind != AllocationOutcome::Kind::kAllocated; ++i) {
    outcome = Allocate(inventory, prepared, node, options);
  }
  EXPECT_EQ(outcome.kind, AllocationOutcome::Kind::kAllocated);
}

TEST(CelExpressionsTest, AnswersAboutADevice) {
  const Case cases[] = {
      {"device.driver == 'gpu.example.com'", "yes"},
      {"device.driver == 'other.com'", "no"},
      {"device.attributes['gpu.example.com'].model == 'H100'", "yes"},
      {"device.attributes['gpu.example.com'].model == 'A100'", "no"},
      {"device.attributes['gpu.example.com'].index > 2 && "
       "device.attributes['gpu.example.com'].healthy",
       "yes"},
      {"device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0'", "yes"},
      {"device.attributes['gpu.example.com'].none == 'a'", "invalid"},
      {"device.attributes['other.com'].model == 'H100'", "invalid"},
      {"has(device.attributes['gpu.example.com'].none)", "no"},
      {"device.attributes['gpu.example.com'].driverVersion.isGreaterThan(semver('570.9.0'))",
       "yes"},
      {"device.capacity['gpu.example.com'].memory.compareTo(quantity('80Gi')) == 0", "yes"},
      {"device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('80Gi'))", "no"},
      {"device.capacity['gpu.example.com'].share.compareTo(quantity('1.5')) == 0", "yes"},
      {"'y' in device.attributes['gpu.example.com'].links", "yes"},
      {"'z' in device.attributes['gpu.example.com'].links", "no"},
      {"device.attributes['gpu.example.com'].numbers == [1, 2] && "
       "device.attributes['gpu.example.com'].flags[0] && "
       "device.attributes['gpu.example.com'].versions[0].major() == 1",
       "yes"},
      {"device.allowMultipleAllocations", "no"},
      {"device.driver ==", "invalid"},
      {"device.none", "invalid"},
      {"'text'", "invalid"}};
  for (const Case& c : cases) EXPECT_EQ(Ask(c.expression), c.answer) << c.expression;
  EXPECT_EQ(
      Ask("device.allowMultipleAllocations", R"({"name": "a", "allowMultipleAllocations": true})"),
      "yes");
}

TEST(CelExpressionsTest, DevicesThatNoExpressionCanRead) {
  for (const char* device : {R"({"name": "a", "attributes": {"v": {"version": "1.x"}}})",
                             R"({"name": "a", "attributes": {"v": {"newer": 1}}})"}) {
    EXPECT_EQ(Ask("true", device), "invalid") << device;
  }
}

TEST(CelExpressionsTest, CostIsLimited) {
  CelExpressions::Limits limits;
  limits.cost = 100;
  const CelExpressions expressions(limits);
  EXPECT_EQ(Ask("lists.range(1000).all(x, x >= 0)", kGpu, expressions), "invalid");
  EXPECT_EQ(Ask("lists.range(2).all(x, x >= 0)", kGpu, expressions), "yes");
  EXPECT_EQ(Ask("lists.range(1000000).all(x, x >= 0)"), "invalid") << "the limit of the API";
}

TEST(CelExpressionsTest, CompilesAndPreparesOnce) {
  const CelExpressions expressions;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Ask("device.driver == 'gpu.example.com'", kGpu, expressions), "yes");
    EXPECT_EQ(Ask("device.driver ==", kGpu, expressions), "invalid");
  }
  EXPECT_EQ(expressions.counts().compiled, 2);
  EXPECT_EQ(expressions.counts().prepared, 1);
  EXPECT_EQ(expressions.counts().evaluated, 1);
  // An expression that may read anything is evaluated again, for the same content.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Ask("'model' in device.attributes['gpu.example.com']", kGpu, expressions), "yes");
  }
  EXPECT_EQ(expressions.counts().prepared, 1);
  EXPECT_EQ(expressions.counts().evaluated, 4);
}

// Devices that differ elsewhere share an answer; those that differ in what is read do not.
TEST(CelExpressionsTest, AnswersDependOnWhatIsRead) {
  const CelExpressions expressions;
  const auto device = [](const std::string& attributes, const std::string& more = "") {
    return R"({"name": "a", "attributes": {)" + attributes + "}" + more + "}";
  };
  const auto is_a = [&](const std::string& content) {
    return Ask("device.attributes[device.driver].?model.orValue('none') == 'a'", content,
               expressions);
  };
  EXPECT_EQ(is_a(device(R"("model": {"string": "a"}, "uuid": {"string": "1"})")), "yes");
  EXPECT_EQ(is_a(device(R"("model": {"string": "a"}, "uuid": {"string": "2"})")), "yes");
  EXPECT_EQ(is_a(device(R"("model": {"string": "a"})", R"(, "capacity": {"m": {"value": "1"}})")),
            "yes");
  EXPECT_EQ(expressions.counts().evaluated, 1);
  EXPECT_EQ(is_a(device(R"("model": {"string": "b"})")), "no");
  EXPECT_EQ(is_a(device(R"("model": {"version": "1.0.0"})")), "invalid") << "no such overload";
  EXPECT_EQ(is_a(device("")), "no");
  EXPECT_EQ(is_a(device(R"("gpu.example.com/model": {"string": "a"})")), "yes");
  EXPECT_EQ(is_a(device(R"("other.com/model": {"string": "a"})")), "no");
  EXPECT_EQ(is_a(device(R"("model": {"string": "a"}, "uuid": {"version": "x"})")), "invalid")
      << "a device with an invalid value has no answer";
  EXPECT_EQ(is_a(device(R"("model": {"string": "a"}, "uuid": {"newer": 1})")), "invalid");
  EXPECT_EQ(is_a(device(R"("model": {"string": "a"}, "uuid": {"versions": ["1.0.0", "x"]})")),
            "invalid");
  // The driver and allowMultipleAllocations count always.
  constexpr const char* kShared = "device.allowMultipleAllocations";
  EXPECT_EQ(Ask(kShared, device(""), expressions), "no");
  EXPECT_EQ(Ask(kShared, device("", R"(, "allowMultipleAllocations": true)"), expressions), "yes");
}

TEST(CelExpressionsTest, CachesAreBounded) {
  CelExpressions::Limits limits;
  limits.expressions = limits.contents = limits.answers = 2;
  const CelExpressions expressions(limits);
  const auto ask = [&](const std::string& expression, int number) {
    return Ask(expression,
               R"({"name": "a", "attributes": {"index": {"int": )" + std::to_string(number) + "}}}",
               expressions);
  };
  const auto equals = [](int number) {
    return "device.attributes['gpu.example.com'].index == " + std::to_string(number);
  };
  for (const int number : {1, 2, 1, 3, 1}) EXPECT_EQ(ask(equals(number), number), "yes");
  EXPECT_EQ(expressions.counts().compiled, 3) << "the one used last stays";
  EXPECT_EQ(expressions.counts().evaluated, 3);
  EXPECT_EQ(ask(equals(2), 2), "yes");
  EXPECT_EQ(expressions.counts().compiled, 4);
  EXPECT_EQ(expressions.counts().evaluated, 4);
  EXPECT_EQ(expressions.counts().prepared, 3);
  constexpr const char* kAnything = "'index' in device.attributes['gpu.example.com']";
  for (const int number : {1, 2, 3}) EXPECT_EQ(ask(kAnything, number), "yes");
  EXPECT_EQ(expressions.counts().prepared, 5) << "2 was still there";
  limits.expressions = 100;
  limits.nodes = 6;
  const CelExpressions narrow(limits);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Ask("device.driver == 'a'", kGpu, narrow), "no");
    EXPECT_EQ(Ask("device.driver == 'b'", kGpu, narrow), "no");
  }
  EXPECT_EQ(narrow.counts().compiled, 4) << "both together are too large";
}

TEST(CelExpressionsTest, AnswersFollowSlices) {
  const CelExpressions expressions;
  const auto device = [](const char* model, const char* memory) {
    return std::string(R"({"name": "a", "attributes": {"model": {"string": ")") + model +
           R"("}}, "capacity": {"memory": {"value": ")" + memory + "\"}}}";
  };
  constexpr const char* kModel = "device.attributes['gpu.example.com'].model == 'a'";
  constexpr const char* kMemory =
      "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('1Gi'))";
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Ask(kModel, device("a", "1Gi"), expressions), "yes");
    EXPECT_EQ(Ask(kModel, device("b", "1Gi"), expressions), "no");
    EXPECT_EQ(Ask(kMemory, device("a", "1Gi"), expressions), "no");
    EXPECT_EQ(Ask(kMemory, device("a", "2Gi"), expressions), "yes");
  }
  const ResourceSlice other = SliceOf(device("a", "1Gi"), "other.com");
  EXPECT_EQ(expressions.Matches(kModel, other, other.devices.front()).status().code(),
            Code::kInvalid)
      << "the same names in the domain of another driver";
}

TEST(CelExpressionsTest, DerivedAttributes) {
  const CelExpressions expressions;
  const ResourceSlice slice = SliceOf(kGpu);
  const Device& gpu = slice.devices.front();
  const auto derive = [&](const std::string& expression) {
    return expressions.Derive(expression, slice, gpu);
  };
  const auto attribute = [&](const char* name) -> const Attribute& {
    for (const auto& [key, value] : *gpu.attributes) {
      if (key.str() == name) return value;
    }
    ADD_FAILURE() << name;
    return gpu.attributes->front().second;
  };
  for (const char* name :
       {"model", "index", "healthy", "driverVersion", "links", "numbers", "flags", "versions"}) {
    const Result<Attribute> value =
        derive(std::string("device.attributes['gpu.example.com'].") + name);
    ASSERT_TRUE(value.ok()) << name << ": " << value.status().message();
    EXPECT_EQ(*value, attribute(name)) << name;
  }
  EXPECT_EQ(derive("device.attributes['gpu.example.com'].index / 2")->number, 1);
  EXPECT_EQ(derive("[]")->type, Attribute::Type::kUnknown);
  EXPECT_EQ(derive("device.attributes['gpu.example.com'].none").status().code(), Code::kInvalid);
  EXPECT_EQ(derive("device.attributes").status().code(), Code::kInvalid);
  // One text, two uses.
  EXPECT_EQ(derive("42")->number, 42);
  EXPECT_EQ(expressions.Matches("42", slice, gpu).status().code(), Code::kInvalid);
  EXPECT_EQ(derive("42")->number, 42);
}

TEST(CelExpressionsTest, ServesTheAllocator) {
  const CelExpressions expressions;
  Inventory inventory(Features::Of(37), expressions);
  cluster::Node node;
  node.meta.name = "n1";
  auto mig = std::make_shared<DeviceClass>();
  mig->name = "mig";
  mig->selectors = {
      "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].type == 'mig'"};
  const auto claim = [&](const std::string& selector) {
    auto made = std::make_shared<ResourceClaim>();
    made->name = made->uid = "c";
    DeviceRequest& request = made->requests.emplace_back();
    request.name = "r";
    request.exactly.emplace();
    request.exactly->device_class = "mig";
    request.exactly->mode = "ExactCount";
    request.exactly->count = 1;
    request.exactly->selectors = {selector};
    return made;
  };
  const auto chosen = [&](const std::string& selector) -> std::string {
    const PreparedClaims prepared(
        {claim(selector)}, [&](const std::string&) { return mig; }, inventory.features());
    const AllocationOutcome outcome = Allocate(inventory, prepared, node);
    if (outcome.kind == AllocationOutcome::Kind::kAllocated) {
      return outcome.allocations.front().devices.front().device.str();
    }
    return FaultName(outcome.fault.fault);
  };
  const auto put = [&](const char* profile) {
    const std::string devices =
        R"({"name": "gpu", "attributes": {"type": {"string": "gpu"}}}, {"name": "slice", "attributes": {
        "type": {"string": "mig"}, "profile": {"string": ")" +
        std::string(profile) + R"("}}})";
    inventory.PutSlice(std::make_shared<ResourceSlice>(SliceOf(devices)));
  };
  constexpr const char* kProfile = "device.attributes['gpu.example.com'].profile == '1g'";
  put("1g");
  EXPECT_EQ(chosen(kProfile), "slice") << "the class excludes the device without a profile";
  put("2g");
  EXPECT_EQ(chosen(kProfile), "None");
  put("1g");
  EXPECT_EQ(chosen(kProfile), "slice");
  EXPECT_EQ(chosen("device.attributes['gpu.example.com'].none == 1"), "ExpressionFailed");
}

}  // namespace
}  // namespace nos::dra
