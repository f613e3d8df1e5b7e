// Costs of the GPUs of clusters, by holder and category: the price of each GPU and moment divided
// into parts that add up to the bill.
//
//   Costs costs(recorder, catalogue, prices);
//   NOS_ASSIGN(const Ledger ledger, costs.Between("prod", from, to));
//   ledger.total().cost == the bill, to the last millionth
//
// Computed from stored history hour by hour. Closed hours are kept until a record about their time
// arrives. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/function_ref.h"
#include "base/metrics.h"
#include "telemetryserver/cost/ledger.h"
#include "telemetryserver/levels.h"
#include "telemetryserver/prices.h"
#include "telemetryserver/recorder.h"

namespace nos::telemetryserver {

class Costs {
 public:
  // Limit of hours times GPUs that one call computes anew.
  static constexpr size_t kMaxGpuHours = 100'000;
  // Limit of namespaces of a cluster in metrics; further ones count together, as this name.
  static constexpr size_t kMaxNamespaces = 200;
  static constexpr const char* kOthers = "_others";

  // REQUIRES: CheckPrices accepts the prices. `recorder` and `catalogue` must outlive this object.
  Costs(Recorder& recorder, const gpu::Catalogue& catalogue, PriceList prices,
        size_t max_gpu_hours = kMaxGpuHours)
      : recorder_(recorder),
        catalogue_(catalogue),
        prices_(WithTimes(std::move(prices))),
        max_gpu_hours_(max_gpu_hours) {}

  const PriceList& prices() const { return prices_; }
  // Errors: kNotFound: no such cluster; kUnavailable: a part of the hours is computed and kept, so
  // asking again continues; kInvalid: so many hours cannot be kept, or the sums are too large; see
  // Archive.
  Result<Ledger> Between(const std::string& cluster, telemetry::Millis from, telemetry::Millis to);
  // The same by periods, in order, and their beginnings: each ends `phase` after a multiple of
  // `length`. REQUIRES: both are whole hours. Periods before history begins are left out.
  struct Periods {
    telemetry::Millis length = kDay;
    telemetry::Millis phase = 0;
  };
  Status EachPeriod(const std::string& cluster, telemetry::Millis from, telemetry::Millis to,
                    const Periods& periods,
                    FunctionRef<void(telemetry::Millis begin, const Ledger& ledger)> take);
  // Time of the first record; nullopt: there is none. Error: kNotFound.
  Result<std::optional<telemetry::Millis>> Begin(const std::string& cluster);
  // Adds hours that closed since the previous call to metrics, once their last records should have
  // arrived. The first call only notes the hour. Call it about once a minute, from one thread.
  void Count(Metrics& metrics);

 private:
  struct Hour {
    uint64_t mark = 0;  // see Arrivals
    std::shared_ptr<const Ledger> ledger;
  };
  using Key = std::pair<std::string, telemetry::Millis>;  // cluster, beginning

  // Calls `take` with the ledger of each hour or part of an hour, in order.
  Status EachHour(const std::string& cluster, telemetry::Millis from, telemetry::Millis to,
                  FunctionRef<void(telemetry::Millis hour, const Ledger& ledger)> take);
  std::shared_ptr<const Ledger> Kept(const std::string& cluster, telemetry::Millis hour);
  // False: another hour was forgotten for it.
  bool Keep(const std::string& cluster, telemetry::Millis hour, Hour computed);
  void CountHour(const std::string& cluster, const Ledger& ledger, Metrics& metrics);

  Recorder& recorder_;
  const gpu::Catalogue& catalogue_;
  const PriceList prices_;
  const size_t max_gpu_hours_;
  std::mutex mutex_;
  std::map<Key, Hour> hours_;
  size_t kept_rows_ = 0;                                        // of all kept hours
  std::map<std::string, telemetry::Millis> counted_until_;      // by cluster
  std::map<std::string, std::set<std::string>> of_namespaces_;  // in metrics, by cluster
};

}  // namespace nos::telemetryserver
