#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dra/objects.h"

namespace nos::dra {
namespace {

// Prefixes every part with its length, so that different specs never have the same text.
class Writer {
 public:
  void Add(std::string_view text) {
    Add(static_cast<int64_t>(text.size()));
    text_ += text;
  }
  void Add(const std::string& text) { Add(std::string_view(text)); }
  void Add(const char*) = delete;
  void Add(int64_t number) {
    char digits[24];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), number).ptr;
    text_.append(std::begin(digits), end);
    text_ += ';';
  }
  void Add(bool flag) { text_ += flag ? 'y' : 'n'; }
  void Add(const Name& name) { Add(name.str()); }
  void Add(const Quantity& quantity) { Add(quantity.ToString()); }
  template <typename A, typename B>
  void Add(const std::pair<A, B>& pair) {
    All(pair.first, pair.second);
  }
  template <typename T>
  void Add(const std::optional<T>& value) {
    Add(value.has_value());
    if (value) Add(*value);
  }
  template <typename T>
  void Add(const std::vector<T>& values) {
    Add(static_cast<int64_t>(values.size()));
    for (const T& value : values) Add(value);
  }
  void Add(const OpaqueConfig& config) { All(config.driver, config.parameters); }
  void Add(const DeviceToleration& t) { All(t.key, t.op, t.value, t.effect, t.seconds); }
  void Add(const DerivedAttribute& derived) { All(derived.name, derived.expression); }
  void Add(const ExactRequest& r) {
    All(r.name, r.device_class, r.selectors, r.mode, r.count, r.admin_access, r.tolerations,
        r.capacity, r.derived);
  }
  void Add(const DeviceRequest& r) { All(r.name, r.exactly, r.first_available); }
  void Add(const DeviceConstraint& c) { All(c.requests, c.match_attribute, c.distinct_attribute); }
  void Add(const ClaimConfig& c) { All(c.requests, c.opaque); }
  template <typename... Parts>
  void All(const Parts&... parts) {
    (Add(parts), ...);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::string SpecText(const ResourceClaim& claim) {
  Writer writer;
  writer.All(claim.requests, claim.constraints, claim.config);
  return writer.Take();
}

}  // namespace nos::dra
