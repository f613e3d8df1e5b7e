#include "dra/cel_expressions.h"

#include <limits>
#include <utility>

#include "cel/program.h"
#include "dra/expressions/content.h"
#include "dra/expressions/recent.h"

namespace nos::dra {
namespace {

using Compiled = Result<std::unique_ptr<const cel::Program>>;
// One text is two programs: as a selector and as a derived attribute.
using ProgramKey = std::pair<cel::Purpose, std::string>;

struct ProgramKeyHash {
  size_t operator()(const ProgramKey& key) const {
    return std::hash<std::string>()(key.second) + static_cast<size_t>(key.first);
  }
};

}  // namespace

class CelExpressions::Caches {
 public:
  explicit Caches(const Limits& limits)
      : programs_(limits.expressions, limits.nodes),
        contents_(limits.contents, std::numeric_limits<size_t>::max()) {
    options_.max_cost = limits.cost;
  }

  // Calls evaluate(program, device, options). Its result has `failure` and `error`.
  template <typename Evaluate>
  auto Run(cel::Purpose purpose, const std::string& expression, const ResourceSlice& slice,
           const Device& device, Evaluate evaluate)
      -> Result<decltype(evaluate(std::declval<const cel::Program&>(),
                                  std::declval<const cel::Device&>(), cel::EvaluateOptions()))> {
    const Compiled& program = ProgramOf(purpose, expression);
    if (!program.ok()) return program.status();
    const Result<cel::Device>& content = ContentOf(slice, device);
    if (!content.ok()) return content.status();
    ++counts_.evaluated;
    auto evaluation = evaluate(**program, *content, options_);
    if (evaluation.failure != cel::Failure::kNone) return Invalid(std::move(evaluation.error));
    return evaluation;
  }

  const Counts& counts() const { return counts_; }

 private:
  const Compiled& ProgramOf(cel::Purpose purpose, const std::string& expression) {
    return programs_.Get({purpose, expression}, [&] {
      ++counts_.compiled;
      Compiled program = cel::Program::Compile(expression, purpose);
      const size_t weight = program.ok() ? (*program)->size() : 1;
      return std::pair(std::move(program), weight);
    });
  }

  const Result<cel::Device>& ContentOf(const ResourceSlice& slice, const Device& device) {
    const ContentKey key(slice, device);
    return contents_.Get(key, [&] {
      ++counts_.prepared;
      return std::pair(PrepareContent(key), size_t{1});
    });
  }

  cel::EvaluateOptions options_;
  Counts counts_;
  Recent<ProgramKey, Compiled, ProgramKeyHash> programs_;
  Recent<ContentKey, Result<cel::Device>, ContentKeyHash> contents_;
};

CelExpressions::CelExpressions() : CelExpressions(Limits()) {}
CelExpressions::CelExpressions(const Limits& limits) : caches_(std::make_unique<Caches>(limits)) {}
CelExpressions::~CelExpressions() = default;

Result<bool> CelExpressions::Matches(const std::string& expression, const ResourceSlice& slice,
                                     const Device& device) const {
  NOS_ASSIGN(const cel::Evaluation evaluation,
             caches_->Run(cel::Purpose::kSelector, expression, slice, device,
                          [](const auto& program, const auto& content, const auto& options) {
                            return program.Evaluate(content, options);
                          }));
  return evaluation.matches;
}

Result<Attribute> CelExpressions::Derive(const std::string& expression, const ResourceSlice& slice,
                                         const Device& device) const {
  NOS_ASSIGN(const cel::Derivation derivation,
             caches_->Run(cel::Purpose::kAttribute, expression, slice, device,
                          [](const auto& program, const auto& content, const auto& options) {
                            return program.Derive(content, options);
                          }));
  return ToAttribute(derivation.value);
}

const CelExpressions::Counts& CelExpressions::counts() const { return caches_->counts(); }

}  // namespace nos::dra
