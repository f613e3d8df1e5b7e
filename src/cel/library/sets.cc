// Lists as sets.
#include "cel/library/function.h"
#include "cel/values/equality.h"
#include "cel/values/list.h"
#include "cel/values/step_limit.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;

bool Has(const ListValue& list, const Value& element) {
  for (uint64_t i = 0; i < list.size(); ++i) {
    StepLimit::Spend(1);
    if (Equals(element, list.At(i)).IsTrue()) return true;
  }
  return false;
}

bool HasAll(const ListValue& list, const ListValue& elements) {
  for (uint64_t i = 0; i < elements.size(); ++i) {
    if (!Has(list, elements.At(i))) return false;
  }
  return true;
}

Value Contains(Arena&, Args args) { return Value::Bool(HasAll(args[0].list(), args[1].list())); }

Value Equivalent(Arena&, Args args) {
  return Value::Bool(HasAll(args[0].list(), args[1].list()) &&
                     HasAll(args[1].list(), args[0].list()));
}

Value Intersects(Arena&, Args args) {
  const ListValue& elements = args[0].list();
  for (uint64_t i = 0; i < elements.size(); ++i) {
    if (Has(args[1].list(), elements.At(i))) return Value::Bool(true);
  }
  return Value::Bool(false);
}

}  // namespace

void DeclareSets(Declarer& declare) {
  using namespace types;
  const Type* const list = declare.types().List(declare.Param("T"));
  declare.Global("sets.contains", "list_sets_contains_list", {list, list}, &kBool, Contains);
  declare.Global("sets.equivalent", "list_sets_equivalent_list", {list, list}, &kBool, Equivalent);
  declare.Global("sets.intersects", "list_sets_intersects_list", {list, list}, &kBool, Intersects);
}

}  // namespace nos::cel
