// Selectors from text to answer. The expected costs and estimates are those of kube-scheduler 1.37
// (test/cel compares many more).
#include "cel/program.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace nos::cel {
namespace {

DeviceSpec Gpu() {
  DeviceSpec spec;
  spec.driver = "gpu.nvidia.com";
  spec.allow_multiple_allocations = true;
  spec.attributes = {{"profile", std::string("1g.10gb")},
                     {"index", int64_t{3}},
                     {"healthy", true},
                     {"driverVersion", Version{"570.86.15"}},
                     {"resource.kubernetes.io/numaNode", int64_t{1}},
                     {"names", std::vector<std::string>{"a", "b"}},
                     {"versions", std::vector<Version>{{"1.0.0"}, {"2.0.0"}}}};
  spec.capacity = {{"memory", "80Gi"}, {"share", "1500m"}};
  return spec;
}

Evaluation Evaluate(std::string_view expression, const DeviceSpec& spec = Gpu(),
                    const EvaluateOptions& options = {}) {
  const auto program = Program::Compile(expression);
  EXPECT_TRUE(program.ok()) << expression << ": " << program.status().message();
  if (!program.ok()) return {};
  return (*program)->Evaluate(Device(spec), options);
}

struct Row {
  const char* name;
  std::string expression;
  bool matches;
  uint64_t cost;
  uint64_t estimate;
};

class Selectors : public testing::TestWithParam<Row> {};

TEST_P(Selectors, HaveResultCostAndEstimate) {
  const Row& row = GetParam();
  const auto program = Program::Compile(row.expression);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const Evaluation evaluation = (*program)->Evaluate(Device(Gpu()));
  EXPECT_EQ(evaluation.failure, Failure::kNone) << evaluation.error;
  EXPECT_EQ(evaluation.matches, row.matches);
  EXPECT_EQ(evaluation.cost, row.cost);
  EXPECT_EQ((*program)->estimated_cost(), row.estimate);
}

INSTANTIATE_TEST_SUITE_P(
    All, Selectors,
    testing::Values(
        Row{"True", "true", true, 0, 0},
        Row{"Driver", "device.driver == 'gpu.nvidia.com'", true, 4, 4},
        Row{"DriverAndProfile",
            "device.driver == 'gpu.nvidia.com' && "
            "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'",
            true, 9, 9},
        Row{"BoolAttribute", "device.attributes['gpu.nvidia.com'].healthy", true, 4, 4},
        Row{"OtherDomain", "device.attributes['resource.kubernetes.io'].numaNode == 1", true, 5, 5},
        Row{"MissingDomain", "'none' in device.attributes", false, 3, 3},
        Row{"Capacity", "device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('40Gi'))",
            true, 6, 6},
        Row{"Version",
            "device.attributes['gpu.nvidia.com'].driverVersion.isLessThan(semver('570.100.0'))",
            true, 6, 6},
        Row{"Bind", "cel.bind(a, device.attributes['gpu.nvidia.com'], a.healthy && a.index > 2)",
            true, 8, 18},
        Row{"Exists", "device.attributes['gpu.nvidia.com'].names.exists(n, n == 'b')", true, 17,
            389},
        Row{"Includes", "device.attributes['gpu.nvidia.com'].names.includes('b')", true, 4, 68},
        Row{"Optional", "device.attributes['gpu.nvidia.com'].?none.orValue(true)", true, 3, 5},
        Row{"Has", "has(device.attributes['gpu.nvidia.com'].index)", true, 3, 3},
        Row{"Multiple", "device.allowMultipleAllocations", true, 2, 2},
        Row{"Matches", "device.attributes['gpu.nvidia.com'].profile.matches('^1g[.]')", true, 6,
            18}),
    [](const auto& row) { return std::string(row.param.name); });

struct Case {
  const char* expression;
  bool matches;
};

TEST(Program, Language) {
  const Case cases[] = {
      {"1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 % 4 == 3 && -7 / 2 == -3", true},
      {"--1 == 1 && !!true && -9223372036854775808 < 0", true},
      {"0x1F == 31 && 0xFFu == 255u && 1e3 == 1000.0 && .5 == 0.5", true},
      {"1 < 2u && 2u <= 2.0 && 1.5 > 1 && dyn(1) == dyn(1u) && dyn(1.0) == 1", true},
      {"'a' + \"b\" == 'ab' && 'a' < 'b' && b'a' + b'b' == b'ab'", true},
      {"'\\x41\\u00e9\\101\\n' == 'A\u00e9A\\n' && r'\\n'.size() == 2 && '''a'b''' == \"a'b\"",
       true},
      {"size('h\u00e9llo') == 5 && b'\\xff'.size() == 1", true},
      {"[1, 2] + [3] == [1, 2, 3] && 2 in [1, 2] && !(4 in [1, 2]) && [1, 2][1] == 2", true},
      {"{'a': 1}.a == 1 && {1: 'x'}[1] == 'x' && 'a' in {'a': 1} && {1: 2}[dyn(1.0)] == 2", true},
      {"true ? 1 == 1 : 1 / 0 == 1", true},
      {"(1 / 0 == 1) || true", true},
      {"!((1 / 0 == 1) && false)", true},
      {"[1, 2, 3].all(x, x > 0) && [1, 2].exists(x, x == 2) && [1, 2].exists_one(x, x == 2)", true},
      {"[1, 2, 3].filter(x, x > 1).map(x, x * 2) == [4, 6]", true},
      {"[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]", true},
      {"{'a': 1}.all(k, v, k == 'a' && v == 1) && ['x'].all(i, v, i == 0 && v == 'x')", true},
      {"[3, 4].transformList(i, v, i * v) == [0, 4]", true},
      {"{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}", true},
      {"['a'].transformMapEntry(i, v, {v: i}) == {'a': 0}", true},
      {"cel.bind(x, 2, x * x) == 4", true},
      {"[?optional.of(1), ?optional.none()] == [1] && {?'a': optional.none()} == {}", true},
      {"{'a': 1}.?b.orValue(5) == 5 && [1][?3].hasValue() == false", true},
      {"optional.of(2).optMap(x, x * 2).value() == 4 && optional.none().optFlatMap(x, x) == "
       "optional.none()",
       true},
      {"type(1) == int && type([]) == list && type(type(1)) == type && type(null) == null_type",
       true},
      {"int('7') == 7 && uint(7) == 7u && double('1.5') == 1.5 && string(1e6) == '1e+06'", true},
      {"bool('true') && string(b'a') == 'a' && bytes('a') == b'a' && string(1.5) == '1.5'", true},
      {"duration('1h30m').getMinutes() == 90 && string(duration('90s')) == '90s'", true},
      {"timestamp('2024-02-29T12:30:00Z').getDayOfYear() == 59", true},
      {"timestamp('2024-01-01T00:00:00Z').getFullYear('-08:00') == 2023", true},
      {"timestamp(0) + duration('1h') == timestamp('1970-01-01T01:00:00Z')", true},
      {"string(timestamp('2024-01-01T00:00:00+05:30')) == '2024-01-01T00:00:00+05:30'", true},
      {"'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'", true},
      {"'hello'.replace('l', 'L') == 'heLLo' && 'hello'.substring(1, 3) == 'el'", true},
      {"' x '.trim() == 'x' && 'aBc'.upperAscii() == 'ABC' && 'hello'.charAt(1) == 'e'", true},
      {"'hello'.indexOf('l') == 2 && 'hello'.lastIndexOf('l') == 3", true},
      {"'%d %s %x %b %o %.2f'.format([1, 'a', 255, 5, 8, 1234.567]) == '1 a ff 101 10 1,234.57'",
       true},
      {"'%s'.format([[1, 'a', {'k': 2}]]) == '[1, \"a\", {\"k\":2}]'", true},
      {"'abc123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2']", true},
      {"[3, 1, 2].sort() == [1, 2, 3] && [1, 2].reverse() == [2, 1] && [1, 1].distinct() == [1]",
       true},
      {"[[1], [2]].flatten() == [1, 2] && [1, 2, 3].slice(1, 2) == [2] && lists.range(2) == [0, 1]",
       true},
      {"['bb', 'a'].sortBy(x, x.size()) == ['a', 'bb']", true},
      {"[1, 2].sum() == 3 && [1, 2].max() == 2 && [2, 1].min() == 1 && [1, 2].isSorted()", true},
      {"sets.contains([1, 2], [1]) && sets.intersects([1], [1, 2]) && sets.equivalent([1], [1, 1])",
       true},
      {"quantity('1Gi') == quantity('1024Mi') && quantity('1500m').compareTo(quantity('1.5')) == 0",
       true},
      {"quantity('1').add(2).asInteger() == 3 && quantity('0.5').isInteger() == false", true},
      {"sign(quantity('-1')) == -1 && isQuantity('1Zi') == false", true},
      {"semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && semver('v1.2', true).minor() == 2",
       true},
      {"ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3')", true},
      {"ip.isCanonical('::1') && cidr('2001:db8::1/32').masked().ip() == ip('2001:db8::')", true},
      {"url('https://u@h:80/a%20b?x=1&x=2').getQuery() == {'x': ['1', '2']}", true},
      {"url('http://[::1]:8080/').getHostname() == '::1' && isURL('/path')", true},
      {"!format.dns1123Label().validate('ok').hasValue() && format.named('none') == "
       "optional.none()",
       true},
      {"device.attributes['gpu.nvidia.com'].versions[1].major() == 2", true},
      {"device.attributes == device.attributes && device.attributes['none'] == {}", true},
      {".device.driver == 'gpu.nvidia.com'", true},
  };
  for (const Case& each : cases) {
    const Evaluation evaluation = Evaluate(each.expression);
    EXPECT_EQ(evaluation.failure, Failure::kNone) << each.expression << ": " << evaluation.error;
    EXPECT_EQ(evaluation.matches, each.matches) << each.expression;
  }
}

TEST(Program, RefusesWhatUpstreamRefuses) {
  for (const char* expression : {"",
                                 "?!",
                                 "1",
                                 "'a'",
                                 "device",
                                 "device.none",
                                 "none",
                                 "1 + 'a' == 1",
                                 "true && 1",
                                 "!1",
                                 "[1, 'a'] == []",
                                 "{1: 'a', 'b': 'c'} == {}",
                                 "[1].all(x.y, true)",
                                 "has(1)",
                                 "if == 1",
                                 "device.driver.matches('(')",
                                 "duration('x') == duration('1s')",
                                 "int('x') == 1",
                                 "timestamp('x') == timestamp(0)",
                                 "'%d'.format(['a']) == ''",
                                 "'%d'.format([]) == ''",
                                 "9223372036854775808 == 1",
                                 "'\\q' == ''",
                                 "'a",
                                 "1 == 1 == 1 ==",
                                 "b'\\u0041' == b''",
                                 "device.attributes['x'].isNone()",
                                 "google.protobuf.Int64Value{value: 1} == 1",
                                 "[1, 2].map(x, y, x) == []",
                                 "cel.bind(1, 2, true)",
                                 "optional.of(1) == 1"}) {
    const auto program = Program::Compile(expression);
    EXPECT_EQ(program.status().code(), Code::kInvalid) << expression;
  }
}

TEST(Program, ErrorsOfADevice) {
  for (const char* expression :
       {"device.attributes['gpu.nvidia.com'].none", "device.attributes['none'].x == 1",
        "device.capacity['none'].x == quantity('1')",
        "1 / device.attributes['none'].?x.orValue(0) == 1",
        "device.attributes['gpu.nvidia.com'].index == 3 && device.attributes['x'].y",
        "device.attributes['gpu.nvidia.com'].names",
        "device.attributes['gpu.nvidia.com'].profile < 1", "dyn(1) < dyn('a')",
        "9223372036854775807 + device.attributes['gpu.nvidia.com'].index > 0",
        "[1][device.attributes['gpu.nvidia.com'].index] == 1", "quantity('x') == quantity('1')"}) {
    const Evaluation evaluation = Evaluate(expression);
    EXPECT_EQ(evaluation.failure, Failure::kError) << expression;
    EXPECT_FALSE(evaluation.error.empty());
    EXPECT_FALSE(evaluation.matches);
  }
}

TEST(Program, BrokenDevices) {
  DeviceSpec version = Gpu();
  version.attributes["broken"] = Version{"1.2"};
  EXPECT_EQ(Evaluate("true", version).failure, Failure::kDevice);
  DeviceSpec quantity = Gpu();
  quantity.capacity["broken"] = "many";
  EXPECT_EQ(Evaluate("true", quantity).failure, Failure::kDevice);
  quantity.capacity["broken"] = "1.5e-2000000000";  // rounded up to a billionth
  EXPECT_EQ(
      Evaluate("device.capacity['gpu.nvidia.com'].broken == quantity('1n')", quantity).failure,
      Failure::kNone);
}

TEST(Program, StopsAtTheCostLimit) {
  std::string loops = "true";
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) {
    loops = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(" + std::string(name) + ", " + loops + ")";
  }
  const Evaluation evaluation = Evaluate(loops);
  EXPECT_EQ(evaluation.failure, Failure::kLimit);
  EXPECT_GT(evaluation.cost, kMaxCost);
  EXPECT_LT(evaluation.cost, kMaxCost + 10);
  EvaluateOptions options;
  options.max_cost = 3;
  EXPECT_EQ(Evaluate("device.driver == 'gpu.nvidia.com'", Gpu(), options).failure, Failure::kLimit);
  options.max_cost = 4;
  EXPECT_EQ(Evaluate("device.driver == 'gpu.nvidia.com'", Gpu(), options).failure, Failure::kNone);
}

// Nested bindings that double a list each time.
std::string Doubling(int levels, const std::string& start, const std::string& use) {
  std::string text;
  for (int i = 0; i < levels; ++i) {
    const std::string before = i == 0 ? start : "v" + std::to_string(i - 1);
    text += "cel.bind(v" + std::to_string(i) + ", " + before + " + " + before + ", ";
  }
  return text + use + std::string(static_cast<size_t>(levels), ')');
}

struct ReadsRow {
  const char* expression;
  const char* paths;  // "a" or "c" for attribute and capacity, "domain/id"
};

TEST(Program, SaysWhatItReads) {
  const ReadsRow rows[] = {
      {"true", ""},
      {"device.driver == 'a' && !device.allowMultipleAllocations", ""},
      {"device.attributes['x.com'].a == 1 || device.attributes['x.com']['a'] == 2", "a x.com/a"},
      {"device.attributes.x.b == 1 && has(device.attributes['x.com'].a)", "a x/b a x.com/a"},
      {"device.attributes[device.driver].?a.orValue(1) == 1", "a /a"},
      {"device.attributes[?'x.com'].?a.orValue(1) == 1", "a x.com/a"},
      {"device.capacity['x.com'].memory.isGreaterThan(quantity('1'))", "c x.com/memory"},
      {"[1].all(x, device.attributes['x.com'].a == x)", "a x.com/a"},
      {"cel.bind(v, device.attributes['x.com'].a, v == 1)", "a x.com/a"},
      {"cel.bind(d, device, d.driver == 'a')", "all"},
      {"'a' in device.attributes['x.com']", "all"},
      {"'x.com' in device.attributes", "all"},
      {"has(device.attributes.x)", "all"},
      {"device.attributes[''].a == 1", "all"},
      {"device.attributes['x' + '.com'].a == 1", "all"},
      {"device.attributes['x.com'][device.driver] == 1", "all"},
      {"device.attributes['x.com'].all(k, k != 'a')", "all"},
      {".device.attributes['x.com'].a == 1", "a x.com/a"},
      {".device == .device", "all"},
      {"device == device", "all"}};
  for (const ReadsRow& row : rows) {
    const auto program = Program::Compile(row.expression);
    ASSERT_TRUE(program.ok()) << row.expression << ": " << program.status().message();
    std::string paths = (*program)->reads().all ? "all" : "";
    for (const Reads::Path& path : (*program)->reads().paths) {
      paths += (paths.empty() ? "" : " ") + std::string(path.capacity ? "c " : "a ") + path.domain +
               "/" + path.id;
    }
    EXPECT_EQ(paths, row.paths) << row.expression;
  }
}

struct DerivedRow {
  const char* name;
  const char* expression;
  AttributeValue value;
};

class Derived : public testing::TestWithParam<DerivedRow> {};

// A version as its text; the type is the place in AttributeValue.
std::string TextOf(const AttributeValue& value) {
  const auto one = [](const auto& element) -> std::string {
    using T = std::decay_t<decltype(element)>;
    if constexpr (std::is_same_v<T, Version>) {
      return element.text;
    } else if constexpr (std::is_same_v<T, std::string>) {
      return element;
    } else {
      return std::to_string(static_cast<int64_t>(element));
    }
  };
  const auto text = [&](const auto& held) -> std::string {
    if constexpr (requires { held.front(); } &&
                  !std::is_same_v<std::decay_t<decltype(held)>, std::string>) {
      std::string all;
      for (size_t i = 0; i < held.size(); ++i) {
        const typename std::decay_t<decltype(held)>::value_type element = held[i];
        all += one(element) + ",";
      }
      return all;
    } else {
      return one(held);
    }
  };
  return std::to_string(value.index()) + ":" + std::visit(text, value);
}

TEST_P(Derived, AttributesHaveTypeAndValue) {
  const auto program = Program::Compile(GetParam().expression, Purpose::kAttribute);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const Derivation derivation = (*program)->Derive(Device(Gpu()));
  EXPECT_EQ(derivation.failure, Failure::kNone) << derivation.error;
  EXPECT_EQ(TextOf(derivation.value), TextOf(GetParam().value));
}

INSTANTIATE_TEST_SUITE_P(
    All, Derived,
    testing::Values(DerivedRow{"Bool", "device.driver == 'x'", false},
                    DerivedRow{"Int", "6 * 7", int64_t{42}},
                    DerivedRow{"String", "device.driver + '!'", std::string("gpu.nvidia.com!")},
                    DerivedRow{"Version", "semver('v1.2', true)", Version{"1.2.0"}},
                    DerivedRow{"VersionWithBuild", "semver('1.2.3-rc.1+b.7')",
                               Version{"1.2.3-rc.1+b.7"}},
                    DerivedRow{"Attribute", "device.attributes['gpu.nvidia.com'].driverVersion",
                               Version{"570.86.15"}},
                    DerivedRow{"Optional", "dyn(optional.of(1))", int64_t{1}},
                    DerivedRow{"Type", "dyn(type(1))", std::string("int")},
                    DerivedRow{"Ints", "[1, 2]", std::vector<int64_t>{1, 2}},
                    DerivedRow{"Bools", "[true, false]", std::vector<bool>{true, false}},
                    DerivedRow{"Strings", "device.attributes['gpu.nvidia.com'].names",
                               std::vector<std::string>{"a", "b"}},
                    DerivedRow{"Versions", "[semver('1.0.0')]", std::vector<Version>{{"1.0.0"}}},
                    DerivedRow{"Empty", "[]", std::vector<std::string>{}}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(Program, RefusesTypesThatNoAttributeHas) {
  for (const char* expression : {"device.attributes", "[device.attributes]", "null", "1.5", "1u",
                                 "[[1]]", "optional.of(1)", "device.capacity['a'].b"}) {
    EXPECT_EQ(Program::Compile(expression, Purpose::kAttribute).status().code(), Code::kInvalid)
        << expression;
  }
  EXPECT_TRUE(Program::Compile("[dyn(1)]", Purpose::kAttribute).ok());
}

TEST(Program, DerivedAttributesThatFail) {
  const auto fails = [](const std::string& expression) {
    const auto program = Program::Compile(expression, Purpose::kAttribute);
    EXPECT_TRUE(program.ok()) << expression << ": " << program.status().message();
    return program.ok() ? (*program)->Derive(Device(Gpu())).failure : Failure::kNone;
  };
  for (const char* expression :
       {"dyn(null)", "dyn(1.5)", "[dyn(1), dyn('a')]", "[dyn(true), dyn(1)]", "[dyn([1])]",
        "device.attributes['gpu.nvidia.com'].none", "dyn(optional.none())",
        "dyn(optional.of([1]))"}) {
    EXPECT_EQ(fails(expression), Failure::kError) << expression;
  }
  EXPECT_EQ(fails(Doubling(40, "[1]", "v39")), Failure::kLimit);
}

TEST(Program, AnErrorThatEndsAnEvaluationIsNotAbsorbed) {
  EvaluateOptions options;
  options.max_cost = 20;
  EXPECT_EQ(Evaluate("true || [1].all(x, lists.range(1000).all(y, y < x))", Gpu(), options).failure,
            Failure::kNone);
  EXPECT_EQ(Evaluate("lists.range(1000).all(y, y >= 0) || true", Gpu(), options).failure,
            Failure::kLimit);
}

TEST(Program, StopsWhenItIsInterrupted) {
  const std::atomic<bool> interrupted = true;
  EvaluateOptions options;
  options.interrupted = &interrupted;
  EXPECT_EQ(Evaluate("lists.range(1000).all(x, x >= 0)", Gpu(), options).failure,
            Failure::kInterrupted);
  EXPECT_EQ(Evaluate("lists.range(10).all(x, x >= 0)", Gpu(), options).failure, Failure::kNone);
}

TEST(Program, BombsEnd) {
  // A list of 2^40 elements costs little until an expression reads them.
  EXPECT_EQ(Evaluate(Doubling(40, "[1]", "v39.size() == 1099511627776")).failure, Failure::kNone);
  EXPECT_EQ(Evaluate(Doubling(40, "[1]", "v39 == v39")).failure, Failure::kLimit);
  EXPECT_EQ(Evaluate(Doubling(40, "[1]", "1 in v39")).failure, Failure::kLimit);
  EXPECT_EQ(Evaluate(Doubling(40, "[1]", "2 in v39")).failure, Failure::kLimit);
  EXPECT_EQ(Evaluate(Doubling(63, "[1]", "v62.size() > 0")).failure, Failure::kError);
  EXPECT_EQ(Evaluate(Doubling(30, "'aaaaaaaa'", "v29 == ''")).failure, Failure::kLimit);
  EXPECT_EQ(Evaluate("lists.range(1000000).distinct() == []").failure, Failure::kLimit);
  // Thousands of elements for the price of one list.
  std::string wide = "device.driver";
  for (int i = 0; i < 2000; ++i) wide += ",''";
  EXPECT_EQ(Evaluate("lists.range(60000).all(x, [" + wide + "] != [])").failure, Failure::kLimit);
}

TEST(Program, HostileTextIsRefused) {
  const auto refused = [](const std::string& expression) {
    return Program::Compile(expression).status().code() == Code::kInvalid;
  };
  for (const char* part :
       {"(", "[", "{", "-", "!", "a.", "a[", "1+", "a?b:", "[1].map(x,", "'", "\\"}) {
    std::string text;
    while (text.size() < 10'000) text += part;
    EXPECT_TRUE(refused(text)) << part;
  }
  EXPECT_TRUE(refused(std::string(kMaxExpressionBytes, ' ') + "true"));
  EXPECT_TRUE(refused("'\xff' == ''"));
  // Each optMap() repeats what is before it.
  std::string chain = "optional.of(1)";
  for (int i = 0; i < 100; ++i) chain += ".optMap(x, x)";
  EXPECT_TRUE(refused(chain + ".hasValue()"));
  // Each map has the type of the one before as the type of its keys and values.
  std::string types;
  std::string last = "{1: 1}";
  for (int i = 0; i < 60; ++i) {
    const std::string name = "m" + std::to_string(i);
    types += "cel.bind(" + name + ", {" + last + ": " + last + "}, ";
    last = name;
  }
  EXPECT_TRUE(refused(types + "true" + std::string(60, ')')));
  EXPECT_TRUE(refused("device.driver.matches('((((a{1000}){1000}){1000}){1000})')"));
}

TEST(Program, NestingLimits) {
  const auto nested = [](int levels, std::string_view open, std::string_view close) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += open;
    text += "true";
    for (int i = 0; i < levels; ++i) text += close;
    return Program::Compile(text).ok();
  };
  EXPECT_TRUE(nested(249, "(", ")"));
  EXPECT_FALSE(nested(250, "(", ")"));
  const auto sum = [](int operators) {
    std::string text = "1";
    for (int i = 0; i < operators; ++i) text += "+1";
    return Program::Compile(text + " > 0").ok();
  };
  EXPECT_TRUE(sum(249));  // the comparison is the 250th level
  EXPECT_FALSE(sum(250));
  std::string logic = "true";
  for (int i = 0; i < 1000; ++i) logic += "&&true";
  EXPECT_TRUE(Program::Compile(logic).ok()) << "chains of one logical operator are balanced";
}

TEST(Program, ServesSeveralThreads) {
  const auto program = Program::Compile(
      "device.attributes['gpu.nvidia.com'].names.map(n, n + device.driver).exists(n, n == "
      "'bgpu.nvidia.com')");
  ASSERT_TRUE(program.ok());
  const Device device(Gpu());
  std::vector<std::thread> threads;
  std::atomic<int> matches = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) matches += (*program)->Evaluate(device).matches ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(matches, 400);
}

}  // namespace
}  // namespace nos::cel
