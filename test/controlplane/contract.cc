#include "contract.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/file.h"

namespace nos::kube {
namespace {

constexpr std::chrono::minutes kPatience{1};

}  // namespace

Result<ApiResponse> CountingTransport::Do(const ApiRequest& request) {
  auto answer = inner_.Do(request);
  if (answer.ok() && answer->code == 410) ++gone;
  if (!request.Query("limit").empty()) {
    ++lists;
    if (after_list) after_list();
  }
  return answer;
}

Result<std::unique_ptr<WatchStream>> CountingTransport::Watch(const ApiRequest& request) {
  ++watches;
  return inner_.Watch(request);
}

Status ReadRecord(JsonSource source, Record& record) {
  NOS_ASSIGN(const Json tree, TreeOf(source));
  record.meta = {std::string(FindString(tree, "metadata", "namespace")),
                 std::string(FindString(tree, "metadata", "name")),
                 std::string(FindString(tree, "metadata", "resourceVersion"))};
  record.value = FindString(tree, "data", "value");
  return Status::Ok();
}

std::string ControlPlaneFolder() {
  const char* folder = std::getenv("NOS_CONTROLPLANE_DIR");  // NOLINT(concurrency-mt-unsafe)
  return folder == nullptr ? "" : folder;
}

std::string Output(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");  // NOLINT(bugprone-command-processor): our own scripts
  std::string output;
  for (int c; (c = std::fgetc(pipe)) != EOF;) output += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << command;
  if (output.ends_with('\n')) output.pop_back();
  return output;
}

std::string ControlPlane(const std::string& arguments) {
  return Output(fmt::format("'{}' {}", NOS_CONTROLPLANE_SCRIPT, arguments));
}

void ContractTest::SetUp() {
  const std::string kubeconfig = ControlPlaneFolder() + "/kubeconfig";
  if (access(kubeconfig.c_str(), R_OK) != 0) {
    GTEST_SKIP() << "no control plane in '" << ControlPlaneFolder()
                 << "' (NOS_CONTROLPLANE_DIR; script/controlplane up starts one)";
  }
  http_ = Connect(kubeconfig);
  transport_ = std::make_unique<CountingTransport>(*http_);
  client_ = std::make_unique<Client>(*transport_);
  const Json made = Make(kNamespaces, {{"metadata", {{"generateName", "contract-"}}}});
  ns_ = FindString(made, "metadata", "name");
}

void ContractTest::TearDown() {
  if (ns_.empty()) return;
  EXPECT_TRUE(client_->Delete(kNamespaces, "", ns_).ok());
}

std::unique_ptr<HttpTransport> ContractTest::Connect(const std::string& kubeconfig,
                                                     const HttpOptions& options) {
  auto config = LoadConnection(kubeconfig, "");
  EXPECT_TRUE(config.ok()) << config.status().ToString();
  return std::make_unique<HttpTransport>(*std::move(config), options);
}

void ContractTest::Compact() {
  const auto port = ReadFile(ControlPlaneFolder() + "/etcd.port");
  ASSERT_TRUE(port.ok()) << port.status().ToString();
  ConnectionConfig config;
  config.server = "http://127.0.0.1:" + port->substr(0, port->find('\n'));
  HttpTransport etcd(config, kFast);
  const auto post = [&](std::string path, Json body) {
    auto answer = etcd.Do({"POST", std::move(path), {}, "application/json", "", std::move(body)});
    EXPECT_TRUE(answer.ok() && answer->code == 200);
    return TreeOf(answer->json());
  };
  // etcd's JSON gateway encodes 64-bit numbers as strings. "AA==" is an unused key.
  const auto header = post("/v3/kv/range", {{"key", "AA=="}});
  const Json to = {{"revision", FindString(*header, "header", "revision")}, {"physical", true}};
  EXPECT_TRUE(post("/v3/kv/compaction", to).ok());
  ControlPlane("restart kube-apiserver");
}

Json ContractTest::RecordOf(std::string_view name, std::string_view value) const {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name}, {"namespace", ns_}, {"labels", {{"test", "contract"}}}}},
          {"data", {{"value", value}}}};
}

Json ContractTest::Make(const Resource& resource, const Json& object) {
  auto made = client_->Create(resource, ns_, object);
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  return made.ok() ? *std::move(made) : Json();
}

void ContractTest::MakeRecords(int count) {
  std::vector<ApiRequest> requests;
  requests.reserve(count);
  for (int i = 0; i < count; ++i) {
    requests.push_back({"POST",
                        PathOf(kConfigMaps, ns_),
                        {},
                        "application/json",
                        "",
                        RecordOf(fmt::format("record-{:04}", i))});
  }
  for (const auto& answer : http_->DoAll(requests)) {
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    ASSERT_EQ(answer->code, 201);
  }
}

Result<Json> ContractTest::Send(const ApiRequest& request) {
  NOS_ASSIGN(const ApiResponse response, transport_->Do(request));
  NOS_RETURN_IF_ERROR(StatusOf(response));
  return TreeOf(response.json());
}

std::unique_ptr<Cache<Record>> ContractTest::Watched() {
  ReflectorOptions options;
  options.ns = ns_;
  options.label_selector = "test=contract";
  options.wake = [this] { bell_.Ring(); };
  return std::make_unique<Cache<Record>>(kConfigMaps, ReadRecord, std::move(options));
}

void ContractTest::PumpUntil(Cache<Record>& cache, const std::function<bool()>& done) {
  const SystemClock clock;
  const Time deadline = clock.Now() + kPatience;
  while (true) {
    const Time now = clock.Now();
    cache.Pump(*client_, now);
    if (done()) return;
    ASSERT_LT(now, deadline) << cache.reflector().last_error().ToString();
    bell_.Wait(std::clamp<Duration>(cache.reflector().NextDue() - now, Duration(0), kPatience));
  }
}

void ContractTest::Until(const std::function<bool()>& done) {
  const SystemClock clock;
  const Time deadline = clock.Now() + kPatience;
  while (!done()) {
    ASSERT_LT(clock.Now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace nos::kube
