// Instances taken out of the kubelet's offer because they are to be destroyed, and when each may
// be: once the node's allocatable shows it (or that took too long), and a moment has passed for
// schedulers that still acted on the old figure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "cluster/objects.h"

namespace nos::controllers {

struct WithdrawalTimes {
  Duration timeout{}, settle{};
};

class Withdrawals {
 public:
  explicit Withdrawals(WithdrawalTimes times) : times_(times) {}

  // `withdrawn`: UUID -> resource of what is not in the offer that the kubelet has just confirmed.
  // `offered`: devices offered by resource. Whatever is not withdrawn any more is forgotten.
  void Update(const std::map<std::string, std::string>& withdrawn,
              const std::map<std::string, int64_t>& offered, const cluster::Node& node, Time now);
  // A create or destroy elsewhere does not wait for this one.
  bool MayDestroy(const std::string& uuid, Time now) const;
  // When the next one may be destroyed; none when nothing waits.
  std::optional<Time> NextReady(Time now) const;

 private:
  struct Entry {
    Time since;
    std::optional<Time> shown;
  };
  Time ReadyAt(const Entry& entry) const;

  WithdrawalTimes times_;
  std::map<std::string, Entry> entries_;
};

}  // namespace nos::controllers
