// Reads a configuration strictly: unknown fields are errors, because a misspelt field would be
// ignored silently. Collects all errors with their paths.
//
//   std::vector<std::string> problems;
//   ConfigValue root(&json, "", problems);
//   root.Members(At("parallelism", parallelism),
//                At("profiles", [&](const ConfigValue& list) { list.Elements(ReadProfile); }));
//   // problems: "profiles[1].plugins.filter: must be an object, not a string"
//
// A missing or null value leaves the target unchanged. Refers to the JSON and to `problems`, which
// must outlive it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/function_ref.h"
#include "codec/json.h"

namespace nos::scheduling {

class ConfigValue {
 public:
  template <typename Reader>
  struct Member {
    std::string_view key;
    Reader read;  // void(const ConfigValue&)
  };

  // Null: absent.
  ConfigValue(const Json* value, std::string path, std::vector<std::string>& problems)
      : value_(value), path_(std::move(path)), problems_(problems) {}

  bool Present() const { return value_ != nullptr && !value_->is_null(); }
  const std::string& path() const { return path_; }
  const Json& json() const { return *value_; }  // REQUIRES: present
  // An absent value that reports to the same problems.
  ConfigValue Nothing() const { return {nullptr, path_, problems_}; }
  // Path of a member or element, for problems found later.
  std::string PathOf(std::string_view member) const;
  std::string PathOf(size_t element) const;
  void Fail(std::string_view what) const { FailAt(path_, what); }
  void FailAt(const std::string& path, std::string_view what) const;

  void Read(bool& out) const;  // also the YAML 1.1 words, such as yes and off
  void Read(int32_t& out) const;
  void Read(int64_t& out) const;
  void Read(double& out) const;
  void Read(std::string& out) const;
  void Read(Duration& out) const;  // in Go's format: "1m30s"
  void Read(std::vector<std::string>& out) const;
  template <typename T>
  void Read(std::optional<T>& out) const {
    if (Present()) Read(out.emplace());
  }
  // Visits the elements of a list. Null elements are errors.
  void Elements(FunctionRef<void(const ConfigValue& element)> visit) const;
  // Reads the known members of an object. Unknown members are errors.
  template <typename... Readers>
  void Members(const Member<Readers>&... known) const {
    ForEach([&](std::string_view key, const ConfigValue& value) {
      const bool found = ((key == known.key ? (known.read(value), true) : false) || ...);
      if (!found) value.Fail("there is no such field");
    });
  }
  // The member of an object, or an absent value. Accepts unknown members.
  ConfigValue Get(std::string_view key) const;

 private:
  void ForEach(FunctionRef<void(std::string_view key, const ConfigValue& value)> visit) const;
  // Reports what is expected and returns false, unless `fulfilled`.
  bool Expect(bool fulfilled, std::string_view expected) const;
  template <typename Integer>
  void ReadInteger(Integer& out) const;

  const Json* value_;
  std::string path_;
  std::vector<std::string>& problems_;
};

// Caps the value at about three years, which is equivalent to no limit and far from Duration's
// overflow.
inline Duration SecondsAtMost(int64_t seconds) {
  constexpr int64_t kMaxSeconds = 100'000'000;
  return std::chrono::seconds(std::min(seconds, kMaxSeconds));
}

// `to`: a target of ConfigValue::Read, or a function of the value.
template <typename T>
  requires requires(const ConfigValue& value, T& to) { value.Read(to); }
auto At(std::string_view key, T& to) {
  auto reader = [&to](const ConfigValue& value) { value.Read(to); };
  return ConfigValue::Member<decltype(reader)>{key, std::move(reader)};
}
template <typename Function>
  requires requires(const ConfigValue& value, Function read) { read(value); }
auto At(std::string_view key, Function read) {
  return ConfigValue::Member<Function>{key, std::move(read)};
}

}  // namespace nos::scheduling
