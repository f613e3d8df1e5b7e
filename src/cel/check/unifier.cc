#include "cel/check/unifier.h"

namespace nos::cel {
namespace {

// The first type says less than the second.
bool EqualOrLessSpecific(const Type& a, const Type& b) {
  if (a.is(TypeKind::kDyn) || a.is(TypeKind::kParam)) return true;
  if (b.is(TypeKind::kDyn) || b.is(TypeKind::kParam)) return false;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case TypeKind::kOpaque:
    case TypeKind::kList:
    case TypeKind::kMap: {
      if (a.name != b.name || a.params.size() != b.params.size()) return false;
      for (size_t i = 0; i < a.params.size(); ++i) {
        if (!EqualOrLessSpecific(*a.params[i], *b.params[i])) return false;
      }
      return true;
    }
    case TypeKind::kType:
      return true;
    default:
      return a.IsExactly(b);
  }
}

bool IsWild(const Type& type) { return type.is(TypeKind::kDyn) || type.is(TypeKind::kError); }

// null may stand for it.
bool IsNullable(const Type& type) {
  switch (type.kind) {
    case TypeKind::kOpaque:
    case TypeKind::kStruct:
    case TypeKind::kDuration:
    case TypeKind::kTimestamp:
    case TypeKind::kNull:
      return true;
    default:
      return false;
  }
}

}  // namespace

const Type* Unifier::NewVariable() {
  bound_.push_back(nullptr);
  return types_.Variable(static_cast<int>(bound_.size()) - 1);
}

void Unifier::Set(int variable, const Type* type) {
  const Type*& bound = bound_[static_cast<size_t>(variable)];
  changes_.push_back({variable, bound});
  bound = type;
}

void Unifier::Undo(size_t changes) {
  while (changes_.size() > changes) {
    bound_[static_cast<size_t>(changes_.back().variable)] = changes_.back().before;
    changes_.pop_back();
  }
}

bool Unifier::Assign(const Type& to, const Type& from) {
  const size_t before = changes_.size();
  if (AssignNow(to, from)) return true;
  Undo(before);
  return false;
}

bool Unifier::AssignAll(std::span<const Type* const> to, std::span<const Type* const> from) {
  if (to.size() != from.size()) return false;
  const size_t before = changes_.size();
  for (size_t i = 0; i < to.size(); ++i) {
    if (!AssignNow(*to[i], *from[i])) {
      Undo(before);
      return false;
    }
  }
  return true;
}

bool Unifier::AssignNow(const Type& a, const Type& b) {
  bool bound = false;
  if (b.is(TypeKind::kParam)) {
    if (Bind(a, b, bound)) return true;
    if (bound) return false;
  }
  if (a.is(TypeKind::kParam)) return Bind(b, a, bound);
  if (IsWild(a) || IsWild(b)) return true;
  if (a.is(TypeKind::kNull)) return IsNullable(b);
  if (b.is(TypeKind::kNull)) return IsNullable(a);
  switch (a.kind) {
    case TypeKind::kType:
      return b.is(TypeKind::kType);
    case TypeKind::kOpaque:
    case TypeKind::kList:
    case TypeKind::kMap:
      return AssignParams(a, b);
    default:
      return b.AcceptsType(a);
  }
}

bool Unifier::AssignParams(const Type& a, const Type& b) {
  if (a.kind != b.kind || a.name != b.name || a.params.size() != b.params.size()) return false;
  for (size_t i = 0; i < a.params.size(); ++i) {
    if (!AssignNow(*a.params[i], *b.params[i])) return false;
  }
  return true;
}

bool Unifier::Bind(const Type& type, const Type& variable, bool& bound) {
  if (type.is(TypeKind::kParam) && type.IsExactly(variable)) {
    bound = true;
    return true;
  }
  if (const Type* const current = Bound(variable)) {
    bound = true;
    if (type.kind == current->kind && type.IsExactly(*current)) return true;
    if (!AssignNow(type, *current)) return false;
    const Type* const general = MostGeneral(&type, current);
    if (!Occurs(variable, *general)) Set(variable.variable, general);
    return true;
  }
  bound = false;
  if (variable.variable < 0 || Occurs(variable, type)) return false;
  Set(variable.variable, &type);
  return true;
}

bool Unifier::Occurs(const Type& variable, const Type& within) const {
  if (variable.IsExactly(within)) return true;
  if (within.is(TypeKind::kParam)) {
    const Type* const bound = Bound(within);
    return bound != nullptr && Occurs(variable, *bound);
  }
  for (const Type* param : within.params) {
    if (Occurs(variable, *param)) return true;
  }
  return false;
}

const Type* Unifier::Substitute(const Type* type, bool to_dyn) {
  if (const Type* const bound = Bound(*type)) return Substitute(bound, to_dyn);
  if (type->is(TypeKind::kParam)) return to_dyn ? &types::kDyn : type;
  if (type->params.empty()) return type;
  std::vector<const Type*> params;
  bool changed = false;
  for (const Type* param : type->params) {
    params.push_back(Substitute(param, to_dyn));
    changed = changed || params.back() != param;
  }
  return changed ? types_.With(*type, std::move(params)) : type;
}

const Type* Unifier::MostGeneral(const Type* a, const Type* b) {
  return EqualOrLessSpecific(*a, *b) ? a : b;
}

}  // namespace nos::cel
