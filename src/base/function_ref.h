// A reference to a callable, for parameters: cheaper than std::function. Never store it.
//
//   void ForEach(FunctionRef<void(int)> visit);
//   ForEach([&](int i) { sum += i; });
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace nos {

template <typename Signature>
class FunctionRef;

template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F, typename = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(F&& function)  // NOLINT(google-explicit-constructor): passed like a lambda
      : target_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* target, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(target))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(target_, std::forward<Args>(args)...); }

 private:
  void* target_;
  R (*call_)(void*, Args...);
};

}  // namespace nos
