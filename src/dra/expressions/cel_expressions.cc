#include "dra/cel_expressions.h"

#include <utility>

#include "cel/program.h"
#include "dra/expressions/content.h"
#include "dra/expressions/reading.h"
#include "dra/expressions/recent.h"

namespace nos::dra {
namespace {

// An expression that does not compile is remembered as an error.
struct Compiled {
  Result<std::unique_ptr<const cel::Program>> program;
  Reading reading;
};
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
        contents_(limits.contents, limits.contents),
        matches_(limits.answers, limits.answers),
        derived_(limits.answers, limits.answers) {
    options_.max_cost = limits.cost;
  }

  Result<bool> Matches(const std::string& expression, const ResourceSlice& slice,
                       const Device& device) {
    return Ask<bool>(cel::Purpose::kSelector, expression, slice, device, matches_,
                     [&](const cel::Program& program, const cel::Device& content) -> Result<bool> {
                       cel::Evaluation evaluation = program.Evaluate(content, options_);
                       counts_.cost += evaluation.cost;
                       if (evaluation.failure == cel::Failure::kNone) return evaluation.matches;
                       return Invalid(std::move(evaluation.error));
                     });
  }

  Result<Attribute> Derive(const std::string& expression, const ResourceSlice& slice,
                           const Device& device) {
    return Ask<Attribute>(
        cel::Purpose::kAttribute, expression, slice, device, derived_,
        [&](const cel::Program& program, const cel::Device& content) -> Result<Attribute> {
          cel::Derivation derivation = program.Derive(content, options_);
          counts_.cost += derivation.cost;
          if (derivation.failure == cel::Failure::kNone) return ToAttribute(derivation.value);
          return Invalid(std::move(derivation.error));
        });
  }

  const Counts& counts() const { return counts_; }

 private:
  template <typename T>
  using Answers = Recent<Read, Result<T>, ReadHash>;

  template <typename T, typename Evaluate>
  Result<T> Ask(cel::Purpose purpose, const std::string& expression, const ResourceSlice& slice,
                const Device& device, Answers<T>& answers, Evaluate evaluate) {
    Compiled& compiled = ProgramOf(purpose, expression);
    if (!compiled.program.ok()) return compiled.program.status();
    const auto answer = [&]() -> Result<T> {
      const Result<cel::Device>& content = ContentOf(slice, device);
      if (!content.ok()) return content.status();
      ++counts_.evaluated;
      return evaluate(**compiled.program, *content);
    };
    if (compiled.reading.everything() || !validity_.Of(*device.attributes)) return answer();
    return answers.Get(compiled.reading.Of(slice, device),
                       [&] { return std::pair(answer(), size_t{1}); });
  }

  Compiled& ProgramOf(cel::Purpose purpose, const std::string& expression) {
    return programs_.Get({purpose, expression}, [&] {
      ++counts_.compiled;
      auto program = cel::Program::Compile(expression, purpose);
      const size_t weight = program.ok() ? (*program)->size() : 1;
      Reading reading(static_cast<uint64_t>(counts_.compiled),
                      program.ok() ? (*program)->reads() : cel::Reads());
      return std::pair(Compiled{std::move(program), std::move(reading)}, weight);
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
  Validity validity_;
  Recent<ProgramKey, Compiled, ProgramKeyHash> programs_;
  Recent<ContentKey, Result<cel::Device>, ContentKeyHash> contents_;
  Answers<bool> matches_;
  Answers<Attribute> derived_;
};

CelExpressions::CelExpressions() : CelExpressions(Limits()) {}
CelExpressions::CelExpressions(const Limits& limits) : caches_(std::make_unique<Caches>(limits)) {}
CelExpressions::~CelExpressions() = default;

Result<bool> CelExpressions::Matches(const std::string& expression, const ResourceSlice& slice,
                                     const Device& device) const {
  return caches_->Matches(expression, slice, device);
}

Result<Attribute> CelExpressions::Derive(const std::string& expression, const ResourceSlice& slice,
                                         const Device& device) const {
  return caches_->Derive(expression, slice, device);
}

uint64_t CelExpressions::cost() const { return caches_->counts().cost; }

const CelExpressions::Counts& CelExpressions::counts() const { return caches_->counts(); }

}  // namespace nos::dra
