// Shared parts of the contract tests: a client of the real API server in NOS_CONTROLPLANE_DIR, a
// namespace per test, a counting transport. Without a control plane the tests are skipped.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/wake_signal.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/http_transport.h"

namespace nos::kube {

// Forwards everything. `watches` counts started watches, `lists` GETs with a limit, `gone` answers
// with code 410.
class CountingTransport final : public Transport {
 public:
  explicit CountingTransport(Transport& inner) : inner_(inner) {}
  Result<ApiResponse> Do(const ApiRequest& request) override;
  Result<std::unique_ptr<WatchStream>> Watch(const ApiRequest& request) override;

  std::atomic<int> lists{0}, watches{0}, gone{0};
  std::function<void()> after_list;

 private:
  Transport& inner_;
};

// A ConfigMap, the test object.
struct Record {
  struct {
    std::string ns, name, resource_version;
  } meta;
  std::string value;  // data.value
};
Status ReadRecord(JsonSource source, Record& record);

std::string ControlPlaneFolder();
// The output of a shell command, which must succeed.
std::string Output(const std::string& command);
// The output of script/controlplane with these arguments.
std::string ControlPlane(const std::string& arguments);

class ContractTest : public testing::Test {
 protected:
  static inline const HttpOptions kFast{.requests_per_second = 5000, .burst = 5000};

  void SetUp() override;
  void TearDown() override;

  // A separate client, configured by `kubeconfig`.
  static std::unique_ptr<HttpTransport> Connect(const std::string& kubeconfig,
                                                const HttpOptions& options = kFast);
  // Compacts the store, so that etcd and the API server forget all versions up to now.
  void Compact();

  Json RecordOf(std::string_view name, std::string_view value = "") const;
  Json Make(const Resource& resource, const Json& object);  // creates it; must succeed
  void MakeRecords(int count);                              // "record-0000", "record-0001" ...
  // Sends a request without a method in Client.
  Result<Json> Send(const ApiRequest& request);

  // A cache of the test's own records; rings bell_.
  std::unique_ptr<Cache<Record>> Watched();
  // Pumps on every event until `done`; fails after a minute.
  void PumpUntil(Cache<Record>& cache, const std::function<bool()>& done);
  // Polls until `done`; fails after a minute.
  static void Until(const std::function<bool()>& done);

  WakeSignal bell_;
  std::unique_ptr<HttpTransport> http_;
  std::unique_ptr<CountingTransport> transport_;
  std::unique_ptr<Client> client_;
  std::string ns_;
};

}  // namespace nos::kube
