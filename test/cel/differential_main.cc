// Compares src/cel with the evaluator of kube-scheduler (oracle/). Two steps, so that the oracle
// runs as a filter between them:
//
//   nos-cel-differential ask --count 1000 --seed 1 [--expressions FILE] > questions
//   oracle < questions > answers
//   nos-cel-differential compare questions answers [again]
//
// `compare` prints each difference and, to `again`, the questions that differ with many
// repetitions: answers that depend on the order of Go's maps then show as unstable, and do not
// count.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "cel/program.h"
#include "generator.h"

namespace nos::cel {
namespace {

namespace json = boost::json;

constexpr size_t kBatch = 50;

std::vector<DeviceSpec> Devices() {
  std::vector<DeviceSpec> devices;
  devices.push_back({});
  DeviceSpec full;
  full.driver = "dra.example.com";
  full.attributes = {{"bool", true},
                     {"int", int64_t{7}},
                     {"string", std::string("fish")},
                     {"version", Version{"1.2.3"}},
                     {"other.com/x", int64_t{-1}}};
  full.capacity = {{"memory", "80Gi"}, {"other.com/x", "1500m"}};
  devices.push_back(full);
  full.allow_multiple_allocations = true;
  full.attributes = {{"bool", false},
                     {"string", std::string("h\u00e9llo")},
                     {"ints", std::vector<int64_t>{1, 2, 3}},
                     {"strings", std::vector<std::string>{"a", "fish"}},
                     {"bools", std::vector<bool>{true, false}},
                     {"version", std::vector<Version>{{"1.0.0"}, {"2.0.0-rc.1"}}}};
  full.capacity = {{"memory", "12345678901234567890"}};
  devices.push_back(full);
  DeviceSpec one;
  one.driver = "dra.example.com";
  one.attributes = {{"int", int64_t{1}}};
  one.capacity = {{"memory", "0.5"}};
  devices.push_back(one);
  return devices;
}

template <typename T>
json::value Plain(const T& value) {
  if constexpr (std::is_same_v<T, Version>) {
    return json::value(value.text);
  } else {
    return json::value(value);
  }
}

template <typename T>
constexpr std::string_view FieldName() {
  if constexpr (std::is_same_v<T, int64_t>) return "int";
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_same_v<T, std::string>) return "string";
  return "version";
}

struct ToJson {
  template <typename T>
  json::object operator()(const T& value) const {
    return {{FieldName<T>(), Plain(value)}};
  }
  template <typename T>
  json::object operator()(const std::vector<T>& values) const {
    json::array list;
    for (const auto& value : values) list.push_back(Plain(T(value)));
    return {{std::string(FieldName<T>()) + "s", list}};
  }
};

json::object DeviceJson(const DeviceSpec& spec) {
  json::object attributes;
  for (const auto& [name, value] : spec.attributes) {
    attributes[name] = std::visit(ToJson(), value);
  }
  json::object capacity;
  for (const auto& [name, text] : spec.capacity) capacity[name] = text;
  return {{"driver", spec.driver},
          {"multiple", spec.allow_multiple_allocations},
          {"attributes", attributes},
          {"capacity", capacity}};
}

// Every published expression as it is, and as a comparison, because few have the type bool.
std::vector<std::string> ReadExpressions(const std::string& path) {
  std::vector<std::string> expressions;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::string text(json::parse(line).as_string());
    expressions.push_back(text);
    expressions.push_back(fmt::format("dyn({}) == dyn({})", text, text));
    expressions.push_back(fmt::format("[dyn({})].size() > 1 || dyn({}) != null", text, text));
  }
  return expressions;
}

void PrintQuestion(const std::vector<std::string>& expressions, size_t device, int repeat) {
  json::array list;
  for (const std::string& expression : expressions) list.push_back(json::value(expression));
  std::cout << json::object{{"expressions", list}, {"device", device}, {"repeat", repeat}} << "\n";
}

json::object DevicesQuestion() {
  json::array devices;
  for (const DeviceSpec& spec : Devices()) devices.push_back(DeviceJson(spec));
  return {{"devices", devices}};
}

int Ask(uint64_t count, uint64_t seed, const std::string& published) {
  std::cout << DevicesQuestion() << "\n";
  std::vector<std::string> expressions;
  if (!published.empty()) expressions = ReadExpressions(published);
  Generator generator(seed);
  while (count-- > 0) expressions.push_back(generator.Next());
  const size_t devices = Devices().size();
  for (size_t i = 0, batch = 0; i < expressions.size(); i += kBatch, ++batch) {
    const auto begin = expressions.begin() + static_cast<int64_t>(i);
    const auto end = begin + static_cast<int64_t>(std::min(kBatch, expressions.size() - i));
    PrintQuestion({begin, end}, batch % devices, 1);
  }
  return 0;
}

// Errors that callers may distinguish.
std::string_view ErrorClass(std::string_view error) {
  if (error.empty()) return "";
  for (const std::string_view known :
       {"actual cost limit exceeded", "no such key", "interrupted"}) {
    if (error.find(known) != std::string_view::npos) return known;
  }
  return "another error";
}

// The difference; empty if there is none.
std::string Difference(const std::string& expression, const Device& device,
                       const json::object& answer) {
  if (answer.contains("unstable")) return "";
  if (expression.size() > kMaxExpressionBytes) return "";
  const auto program = Program::Compile(expression);
  const bool compiles = answer.at("compiles").as_bool();
  if (program.ok() != compiles) {
    return fmt::format("compiles: {} ({}), upstream: {} ({})", program.ok(),
                       program.status().message(), compiles,
                       compiles ? "" : std::string(answer.at("cause").as_string()));
  }
  if (!compiles) return "";
  std::string text;
  const auto estimate = answer.at("estimate").to_number<uint64_t>();
  if ((*program)->estimated_cost() != estimate) {
    text += fmt::format(" estimate: {}, upstream: {};", (*program)->estimated_cost(), estimate);
  }
  const Evaluation evaluation = (*program)->Evaluate(device);
  const auto* const upstream = answer.if_contains("error");
  const std::string error(upstream == nullptr ? "" : std::string(upstream->as_string()));
  if (ErrorClass(evaluation.error) != ErrorClass(error)) {
    text += fmt::format(" error: '{}', upstream: '{}';", evaluation.error, error);
  } else if (evaluation.matches != answer.at("matches").as_bool() && error.empty()) {
    text += fmt::format(" matches: {}, upstream: {};", evaluation.matches, !evaluation.matches);
  }
  const auto cost = answer.at("cost").to_number<uint64_t>();
  // src/cel stops before it has done all that upstream charges for afterwards.
  const bool stopped = evaluation.error.find("too many steps") != std::string::npos;
  if (evaluation.cost != cost && !stopped) {
    text += fmt::format(" cost: {}, upstream: {} ({});", evaluation.cost, cost, error);
  }
  return text;
}

int Compare(const std::string& questions_path, const std::string& answers_path,
            const std::string& again_path) {
  std::ifstream questions(questions_path);
  std::ifstream answers(answers_path);
  std::ofstream again(again_path.empty() ? "/dev/null" : again_path);
  std::vector<Device> devices;
  for (const DeviceSpec& spec : Devices()) devices.emplace_back(spec);
  size_t passed = 0, failed = 0, compiled = 0;
  again << DevicesQuestion() << "\n";
  std::string question_line, answer_line;
  while (std::getline(questions, question_line)) {
    if (!std::getline(answers, answer_line)) {
      fmt::print("the oracle stopped after {} answers\n", passed + failed);
      return 1;
    }
    const json::object question = json::parse(question_line).as_object();
    const json::array list = json::parse(answer_line).as_array();
    if (!question.contains("expressions")) continue;
    const json::array& expressions = question.at("expressions").as_array();
    const auto device = question.at("device").to_number<size_t>();
    for (size_t i = 0; i < expressions.size(); ++i) {
      const std::string expression(expressions[i].as_string());
      const json::object& answer = list.at(i).as_object();
      if (answer.at("compiles").as_bool()) ++compiled;
      const std::string difference = Difference(expression, devices[device], answer);
      if (difference.empty()) {
        ++passed;
        continue;
      }
      ++failed;
      fmt::print("device {}: {}\n  {}\n", device, expression, difference);
      again << json::object{{"expressions", json::array{expression}},
                            {"device", device},
                            {"repeat", 60}}
            << "\n";
    }
  }
  fmt::print("{} of them compile\n{} passed, {} failed\n", compiled, passed, failed);
  return failed == 0 ? 0 : 1;
}

int Usage() {
  fmt::print(stderr,
             "usage: nos-cel-differential ask --count N --seed N [--expressions FILE]\n"
             "       nos-cel-differential compare QUESTIONS ANSWERS [AGAIN]\n");
  return 2;
}

int Main(const std::vector<std::string>& args) {
  if (args.empty()) return Usage();
  if (args[0] == "compare" && args.size() >= 3) {
    return Compare(args[1], args[2], args.size() > 3 ? args[3] : "");
  }
  if (args[0] != "ask" || args.size() % 2 == 0) return Usage();
  uint64_t count = 0, seed = 1;
  std::string published;
  for (size_t i = 1; i + 1 < args.size(); i += 2) {
    if (args[i] == "--count") {
      count = std::stoull(args[i + 1]);
    } else if (args[i] == "--seed") {
      seed = std::stoull(args[i + 1]);
    } else if (args[i] == "--expressions") {
      published = args[i + 1];
    } else {
      return Usage();
    }
  }
  return Ask(count, seed, published);
}

}  // namespace
}  // namespace nos::cel

int main(int argc, char** argv) { return nos::cel::Main({argv + 1, argv + argc}); }
