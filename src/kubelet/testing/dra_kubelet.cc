#include "kubelet/testing/dra_kubelet.h"

#include <dra.pb.h>
#include <drahealth.pb.h>
#include <pluginregistration.pb.h>
#include <poll.h>

#include <chrono>

#include "base/unix_socket.h"
#include "kubelet/grpc_call.h"
#include "kubelet/grpc_connection.h"

namespace nos::kubelet {
namespace {

constexpr CallOptions kPatience{.timeout = std::chrono::seconds(45)};

template <typename Request>
std::string Asking(const std::vector<ClaimReference>& claims) {
  Request request;
  for (const ClaimReference& claim : claims) {
    dra::Claim& to = *request.add_claims();
    to.set_namespace_(claim.ns);
    to.set_name(claim.name);
    to.set_uid(claim.uid);
  }
  return request.SerializeAsString();
}

std::string MethodOf(const std::string& version, const std::string& name) {
  return "/k8s.io.kubelet.pkg.apis.dra." + version + ".DRAPlugin/" + name;
}

PreparedDevice DeviceOf(const dra::Device& device) {
  return {{device.request_names().begin(), device.request_names().end()},
          device.pool_name(),
          device.device_name(),
          {device.cdi_device_ids().begin(), device.cdi_device_ids().end()},
          device.share_id()};
}

}  // namespace

Status DraKubelet::Register(const std::string& driver, const std::string& refuse) {
  const std::string socket = registry_ + "/" + driver + "-reg.sock";
  if (FileIdentity(socket).empty()) return NotFound("there is no " + socket);
  NOS_ASSIGN(const std::string bytes,
             UnaryCall(socket, "/pluginregistration.Registration/GetInfo", "", {}));
  pluginregistration::PluginInfo info;
  if (!info.ParseFromString(bytes)) return Invalid("no PluginInfo");
  type_ = info.type();
  name_ = info.name();
  endpoint_ = info.endpoint();
  versions_ = {info.supported_versions().begin(), info.supported_versions().end()};
  pluginregistration::RegistrationStatus status;
  status.set_plugin_registered(refuse.empty());
  status.set_error(refuse);
  return UnaryCall(socket, "/pluginregistration.Registration/NotifyRegistrationStatus",
                   status.SerializeAsString(), {})
      .status();
}

Result<DraKubelet::Devices> DraKubelet::Prepare(const std::vector<ClaimReference>& claims,
                                                const std::string& version) {
  NOS_ASSIGN(const std::string bytes,
             UnaryCall(endpoint_, MethodOf(version, "NodePrepareResources"),
                       Asking<dra::NodePrepareResourcesRequest>(claims), kPatience));
  dra::NodePrepareResourcesResponse response;
  if (!response.ParseFromString(bytes)) return Invalid("no NodePrepareResourcesResponse");
  Devices prepared;
  for (const auto& [uid, answer] : response.claims()) {
    std::vector<PreparedDevice> devices;
    for (const dra::Device& device : answer.devices()) devices.push_back(DeviceOf(device));
    if (answer.error().empty()) {
      prepared.emplace(uid, std::move(devices));
    } else {
      prepared.emplace(uid, Status(Code::kInternal, answer.error()));
    }
  }
  return prepared;
}

Result<std::map<std::string, Status>> DraKubelet::Unprepare(
    const std::vector<ClaimReference>& claims, const std::string& version) {
  NOS_ASSIGN(const std::string bytes,
             UnaryCall(endpoint_, MethodOf(version, "NodeUnprepareResources"),
                       Asking<dra::NodeUnprepareResourcesRequest>(claims), kPatience));
  dra::NodeUnprepareResourcesResponse response;
  if (!response.ParseFromString(bytes)) return Invalid("no NodeUnprepareResourcesResponse");
  std::map<std::string, Status> statuses;
  for (const auto& [uid, answer] : response.claims()) {
    statuses.emplace(
        uid, answer.error().empty() ? Status::Ok() : Status(Code::kInternal, answer.error()));
  }
  return statuses;
}

Result<std::vector<DeviceHealth>> DraKubelet::Health(const std::string& version) {
  NOS_ASSIGN(UniqueFd fd, ConnectUnix(endpoint_));
  GrpcConnection grpc(std::move(fd), GrpcConnection::Side::kClient, {});
  const std::string method = "/" + version + ".DRAResourceHealth/NodeWatchResources";
  const int32_t stream = grpc.Request(method, "", "99999S");
  for (;;) {
    NOS_RETURN_IF_ERROR(grpc.Flush());
    NOS_ASSIGN(const auto message, TakeMessage(grpc.Find(stream)->received, 1 << 20));
    if (message) {
      drahealth::NodeWatchResourcesResponse response;
      if (!response.ParseFromString(*message)) return Invalid("no NodeWatchResourcesResponse");
      std::vector<DeviceHealth> devices;
      for (const drahealth::DeviceHealth& device : response.devices()) {
        devices.push_back({device.device().device_name(), device.health() == drahealth::HEALTHY,
                           device.message()});
      }
      return devices;
    }
    if (grpc.Find(stream)->ended)
      return Status(Code::kUnimplemented, grpc.Find(stream)->grpc_message);
    pollfd ready{grpc.fd(), POLLIN, 0};
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience.timeout);
    if (poll(&ready, 1, static_cast<int>(patience.count())) == 0) {
      return Status(Code::kDeadline, "no message came");
    }
    NOS_RETURN_IF_ERROR(grpc.Read());
  }
}

}  // namespace nos::kubelet
