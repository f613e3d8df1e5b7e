#include "kubelet/dra_plugin_server.h"

#include <dra.pb.h>
#include <drahealth.pb.h>
#include <fmt/core.h>
#include <pluginregistration.pb.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"

namespace nos::kubelet {
namespace {

// A pod names at most 256 claims, and the kubelet asks for one pod at a time.
constexpr int kMaxClaims = 256;
constexpr size_t kMaxCalls = 256;  // in all; the server limits those of each connection
constexpr size_t kMaxUid = 128, kMaxName = 253;
constexpr size_t kMaxError = 1000;  // bytes; also of the message of an unhealthy device

constexpr std::string_view kPrepare = "NodePrepareResources";
constexpr std::string_view kUnprepare = "NodeUnprepareResources";
const std::vector<std::string> kWatchHealth = {"/v1alpha1.DRAResourceHealth/NodeWatchResources",
                                               "/v1.DRAResourceHealth/NodeWatchResources"};

// The versions of the API differ in nothing that nos sends or reads.
bool IsCall(std::string_view method, std::string_view name) {
  for (const std::string_view version : {"v1", "v1beta1"}) {
    if (method == fmt::format("/k8s.io.kubelet.pkg.apis.dra.{}.DRAPlugin/{}", version, name)) {
      return true;
    }
  }
  return false;
}

Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0750) == 0 || errno == EEXIST) return Status::Ok();
  return {errno == EACCES ? Code::kPermission : Code::kUnavailable,
          fmt::format("cannot create {}: {}", path, std::generic_category().message(errno))};
}

// Parsed claims, or why they are refused. A uid is a part of file names.
Result<std::vector<ClaimReference>> ClaimsOf(
    const google::protobuf::RepeatedPtrField<dra::Claim>& claims) {
  if (claims.size() > kMaxClaims) {
    return Invalid(fmt::format("{} claims in one call; {} are taken", claims.size(), kMaxClaims));
  }
  std::vector<ClaimReference> parsed;
  std::set<std::string> uids;
  for (const dra::Claim& claim : claims) {
    const bool plain = std::ranges::all_of(claim.uid(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
    });
    if (claim.uid().empty() || claim.uid().size() > kMaxUid || !plain || claim.name().empty() ||
        claim.name().size() > kMaxName || claim.namespace_().size() > kMaxName) {
      return Invalid("a claim has no valid uid, name or namespace");
    }
    if (!uids.insert(claim.uid()).second) return Invalid("a claim appears twice");
    parsed.push_back({claim.namespace_(), claim.name(), claim.uid()});
  }
  return parsed;
}

// The answers for the claims of one call, completed in any order by any thread.
template <typename Response>
struct Answers {
  std::mutex mutex;
  Response response;
  size_t missing = 0;
};

std::string ErrorText(const Status& status) {
  std::string text = Shortened(status.message(), kMaxError);
  return text.empty() ? std::string(CodeName(status.code())) : text;
}

}  // namespace

DraPluginServer::DraPluginServer(DraPluginOptions options, DraDriver& driver)
    : options_(std::move(options)),
      driver_(driver),
      server_(GrpcServerOptions{}, [] {}),
      calls_(kMaxCalls) {}

DraPluginServer::~DraPluginServer() = default;

Status DraPluginServer::Keep() {
  const std::string service = Folder() + "/dra.sock";
  const std::string registration = options_.registry + "/" + options_.driver + "-reg.sock";
  if (!server_.Serves(service)) {
    NOS_RETURN_IF_ERROR(MakeFolders());
    GrpcService calls;
    calls.watch_methods = kWatchHealth;
    calls.begin = [this](const GrpcCall& call, std::string_view method, std::string request) {
      Begin(call, method, std::move(request));
    };
    NOS_RETURN_IF_ERROR(server_.Serve(service, std::move(calls)));
  }
  if (server_.Serves(registration)) return Status::Ok();
  NOS_RETURN_IF_ERROR(MakeFolders());
  const auto call = [this](std::string_view method, const std::string& request) {
    return Register(method, request);
  };
  return server_.Serve(registration, {call, {}});
}

Status DraPluginServer::MakeFolders() const {
  NOS_RETURN_IF_ERROR(MakeFolder(options_.plugins));
  NOS_RETURN_IF_ERROR(MakeFolder(Folder()));
  return MakeFolder(options_.registry);
}

void DraPluginServer::PublishHealth(const std::string& pool,
                                    const std::vector<DeviceHealth>& devices, Time now,
                                    Duration valid) {
  using std::chrono::duration_cast;
  using std::chrono::seconds;
  drahealth::NodeWatchResourcesResponse response;
  for (const DeviceHealth& device : devices) {
    drahealth::DeviceHealth& to = *response.add_devices();
    to.mutable_device()->set_pool_name(pool);
    to.mutable_device()->set_device_name(device.device);
    to.set_health(device.healthy ? drahealth::HEALTHY : drahealth::UNHEALTHY);
    to.set_last_updated_time(duration_cast<seconds>(now.time_since_epoch()).count());
    to.set_health_check_timeout_seconds(duration_cast<seconds>(valid).count());
    to.set_message(Shortened(device.message, kMaxError));
  }
  server_.Publish(Folder() + "/dra.sock", response.SerializeAsString());
}

Status DraPluginServer::Registration() const {
  const std::lock_guard lock(mutex_);
  return registered_;
}

GrpcAnswer DraPluginServer::Register(std::string_view method, const std::string& request) {
  if (method == "/pluginregistration.Registration/GetInfo") {
    pluginregistration::PluginInfo info;
    info.set_type("DRAPlugin");
    info.set_name(options_.driver);
    const std::string& folder =
        options_.plugins_of_kubelet.empty() ? options_.plugins : options_.plugins_of_kubelet;
    info.set_endpoint(folder + "/" + options_.driver + "/dra.sock");
    info.add_supported_versions("v1.DRAPlugin");
    info.add_supported_versions("v1beta1.DRAPlugin");
    info.add_supported_versions("v1alpha1.DRAResourceHealth");
    info.add_supported_versions("v1.DRAResourceHealth");
    return {GrpcCode::kOk, info.SerializeAsString()};
  }
  if (method != "/pluginregistration.Registration/NotifyRegistrationStatus") {
    return {GrpcCode::kUnimplemented, "no such method"};
  }
  pluginregistration::RegistrationStatus status;
  if (!status.ParseFromString(request)) return {GrpcCode::kInvalidArgument, "not readable"};
  std::unique_lock lock(mutex_);
  registered_ =
      status.plugin_registered()
          ? Status::Ok()
          : Invalid("the kubelet refuses the driver: " + Shortened(status.error(), kMaxError));
  Log(registered_.ok() ? LogLevel::kInfo : LogLevel::kError,
      registered_.ok() ? "registered DRA driver with kubelet" : "failed to register DRA driver",
      {{"driver", options_.driver}, {"error", registered_.message()}});
  lock.unlock();
  if (options_.on_registration) options_.on_registration();
  return {};
}

// Runs on the server's thread, under its lock.
void DraPluginServer::Begin(const GrpcCall& call, std::string_view method, std::string request) {
  const bool prepares = IsCall(method, kPrepare);
  const bool known = prepares || IsCall(method, kUnprepare);
  // A call that is dropped here ends with the kubelet's time limit, and is repeated.
  (void)calls_.Post([this, call, prepares, known, request = std::move(request)] {
    if (!known) return server_.Answer(call, {GrpcCode::kUnimplemented, "no such method"});
    prepares ? Prepare(call, request) : Unprepare(call, request);
  });
}

void DraPluginServer::Prepare(const GrpcCall& call, const std::string& request) {
  dra::NodePrepareResourcesRequest asked;
  if (!asked.ParseFromString(request)) {
    return server_.Answer(call, {GrpcCode::kInvalidArgument, "the request is not readable"});
  }
  const auto claims = ClaimsOf(asked.claims());
  if (!claims.ok()) {
    return server_.Answer(call, {GrpcCode::kInvalidArgument, claims.status().message()});
  }
  auto answers = std::make_shared<Answers<dra::NodePrepareResourcesResponse>>();
  answers->missing = claims->size();
  if (claims->empty()) return server_.Answer(call, {});
  for (const ClaimReference& claim : *claims) {
    driver_.Prepare(claim, [this, call, answers,
                            uid = claim.uid](const Result<std::vector<PreparedDevice>>& prepared) {
      const std::lock_guard lock(answers->mutex);
      dra::NodePrepareResourceResponse& answer = (*answers->response.mutable_claims())[uid];
      if (!prepared.ok()) answer.set_error(ErrorText(prepared.status()));
      for (const PreparedDevice& device : prepared.value_or({})) {
        dra::Device& to = *answer.add_devices();
        for (const std::string& name : device.requests) to.add_request_names(name);
        to.set_pool_name(device.pool);
        to.set_device_name(device.device);
        for (const std::string& id : device.cdi_ids) to.add_cdi_device_ids(id);
        if (!device.share_id.empty()) to.set_share_id(device.share_id);
      }
      if (--answers->missing > 0) return;
      server_.Answer(call, {GrpcCode::kOk, answers->response.SerializeAsString()});
    });
  }
}

void DraPluginServer::Unprepare(const GrpcCall& call, const std::string& request) {
  dra::NodeUnprepareResourcesRequest asked;
  if (!asked.ParseFromString(request)) {
    return server_.Answer(call, {GrpcCode::kInvalidArgument, "the request is not readable"});
  }
  const auto claims = ClaimsOf(asked.claims());
  if (!claims.ok()) {
    return server_.Answer(call, {GrpcCode::kInvalidArgument, claims.status().message()});
  }
  auto answers = std::make_shared<Answers<dra::NodeUnprepareResourcesResponse>>();
  answers->missing = claims->size();
  if (claims->empty()) return server_.Answer(call, {});
  for (const ClaimReference& claim : *claims) {
    driver_.Unprepare(claim, [this, call, answers, uid = claim.uid](const Status& status) {
      const std::lock_guard lock(answers->mutex);
      dra::NodeUnprepareResourceResponse& answer = (*answers->response.mutable_claims())[uid];
      if (!status.ok()) answer.set_error(ErrorText(status));
      if (--answers->missing > 0) return;
      server_.Answer(call, {GrpcCode::kOk, answers->response.SerializeAsString()});
    });
  }
}

}  // namespace nos::kubelet
