#include "base/key_writer.h"
#include "dra/objects.h"

namespace nos::dra {
namespace {

class Writer : public KeyWriter<Writer> {
 public:
  using KeyWriter::Add;
  void Add(const Name& name) { Add(name.str()); }
  void Add(const Quantity& quantity) { Add(quantity.ToString()); }
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
};

}  // namespace

std::string SpecText(const ResourceClaim& claim) {
  Writer writer;
  writer.All(claim.requests, claim.constraints, claim.config);
  return writer.Take();
}

}  // namespace nos::dra
