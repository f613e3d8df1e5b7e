// Decides which types fit each other, and what type variables stand for.
#pragma once

#include <span>
#include <vector>

#include "cel/types/static_type.h"

namespace nos::cel {

class Unifier {
 public:
  explicit Unifier(TypeStore& types) : types_(types) {}

  const Type* NewVariable();
  // Values of the second type can stand where the first is; binds variables if so.
  bool Assign(const Type& to, const Type& from);
  bool AssignAll(std::span<const Type* const> to, std::span<const Type* const> from);
  // The type with its bound variables replaced. With to_dyn, free variables become dyn.
  const Type* Substitute(const Type* type, bool to_dyn);
  // The more general of two types that fit each other.
  static const Type* MostGeneral(const Type* a, const Type* b);

 private:
  struct Change {
    int variable;
    const Type* before;
  };

  bool AssignNow(const Type& a, const Type& b);
  bool AssignParams(const Type& a, const Type& b);
  // `variable` can stand for `type`; `bound`: it stands for something already.
  bool Bind(const Type& type, const Type& variable, bool& bound);
  void Set(int variable, const Type* type);
  void Undo(size_t changes);
  bool Occurs(const Type& variable, const Type& within) const;
  const Type* Bound(const Type& type) const {
    return type.variable < 0 ? nullptr : bound_[static_cast<size_t>(type.variable)];
  }

  TypeStore& types_;
  std::vector<const Type*> bound_;  // by variable
  std::vector<Change> changes_;
};

}  // namespace nos::cel
