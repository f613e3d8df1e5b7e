// nos agent: runs on each node with GPUs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <iostream>
#include <memory>
#include <thread>

#include "agent/claim_service.h"
#include "agent/device_plugin.h"
#include "agent/node_agent.h"
#include "agent/sharing_modes.h"
#include "base/log.h"
#include "cmd/catalogue_flag.h"
#include "cmd/cli/nvml_library.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/daemon/outside_events.h"
#include "cmd/daemon/process.h"
#include "cmd/daemons/agent_driver.h"
#include "cmd/daemons/agent_telemetry.h"
#include "codec/json.h"
#include "device/describe.h"
#include "device/nvml_gpus.h"
#include "device/shared_backend.h"
#include "kube/metered_transport.h"
#include "kubelet/pod_cgroups.h"
#include "kubelet/pod_resources_client.h"
#include "reconcile/metrics.h"
#include "telemetryreporter/sample_text.h"

namespace nos::cmd {
namespace {

constexpr std::string_view kKind = "MigAgentConfig";
// The sharing modes that the labels of nodes can request, all together.
constexpr agent::RequestedMode kAllModes{.per_gpu = true, .mps = true};

struct AgentFlags {
  DaemonFlags daemon;
  bool once = false, print = false;
  std::string output = "table", library, node;
};

struct Config {
  DaemonConfig daemon;
  agent::AgentConfig agent;
  agent::ClaimServiceOptions claims;
  std::string library, geometries_file;
  device::HostFolders host;
  agent::DevicePlugins plugins;
  agent::SharingModes modes = agent::AllSharingModes({.time_slices = 4});
  kubelet::PodResourcesOptions pod_resources;
  AgentTelemetryConfig telemetry;
};

void DescribeAgent(ConfigFields& f, Config& c) {
  using std::chrono::hours, std::chrono::milliseconds, std::chrono::minutes, std::chrono::seconds;
  f.Seconds(
      "reportConfigIntervalSeconds", c.agent.poll, milliseconds(100), hours(1),
      "Interval of reading GPUs and kubelet, for changes that neither of them announces. Other "
      "changes are reported at once.");
  f.Text("knownMigGeometriesFile", c.geometries_file,
         "File with additional or overridden GPU models (docs/catalogue.md); the same as the "
         "partitioner's.");
  f.Text("nvmlLibrary", c.library,
         "Path of the NVML library. Empty: $NOS_NVML_LIBRARY or libnvidia-ml.so.1, else that of "
         "driverRoot.");
  f.Text("driverRoot", c.host.driver, "Root of the driver's files, as this process sees it.");
  f.Text("driverRootOnHost", c.host.driver_host, "The same, as the host sees it.");
  f.Text("deviceRoot", c.host.dev, "The host's /dev, as this process sees it.");
  c.plugins.Describe(f);
  f.Group("resourceClaims", [&] {
    f.Flag("enabled", c.claims.enabled,
           "Serve ResourceClaims on nodes with label nos.nebuly.com/device-interface=dra, in place "
           "of the device plugin (docs/dra.md).");
    f.Word("extendedResources", c.claims.extended_resources, {"auto", "always", "never"},
           "Announce devices for extended resources (docs/dra.md). auto: if the kubelet is of "
           "version 1.36 or later; always: it is older and has the gate DRAExtendedResource.");
    f.Flag("shares", c.claims.shares,
           "Announce devices that several claims share: memory of GPUs and MIG instances, with "
           "mps.enabled, and time slices, as hybrid.timeSlices says (docs/dra.md).");
    f.Text("pluginsFolder", c.claims.plugins,
           "The kubelet's folder of plugins, at the same path as for the kubelet.");
    f.Text("registryFolder", c.claims.registry, "The folder in which the kubelet finds plugins.");
    f.Text("cdiFolder", c.claims.cdi_folder, "Folder of CDI specifications of claims.");
  });
  f.Text("podResourcesSocket", c.pod_resources.socket, "Socket of the kubelet's PodResources API.");
  f.Seconds(
      "settleSeconds", c.agent.settle, milliseconds(0), seconds(5),
      "Before an instance is destroyed it is subtracted from the node's allocatable. Time that "
      "schedulers then get to see the change.");
  f.Seconds("drainTimeoutSeconds", c.agent.drain_timeout, seconds(1), minutes(10),
            "Used in place of settleSeconds if the agent is not allowed to write nodes/status.");
  agent::DescribeSharing(f, c.modes, c.plugins);
  f.Group("telemetry", [&] { DescribeAgentTelemetry(f, c.telemetry); });
  DescribeDaemon(f, c.daemon);
  f.Retired("webhook", "this daemon serves no webhook");
  f.Group("leaderElection", [&] {
    f.Retired("leaderElect", "every node has its own agent");
    f.Retired("resourceName", "every node has its own agent");
  });
}

Result<std::unique_ptr<device::NvmlLibrary>> OpenLibrary(const AgentFlags& flags,
                                                         const Config& config) {
  return OpenNvml(flags.library.empty() ? config.library : flags.library, config.host);
}

void WarnOfUnwatched(const device::NvmlLibrary& library) {
  if (library.Has(device::nvml::Feature::kHealthEvents)) return;
  Log(LogLevel::kWarn, "failed to monitor health of GPUs",
      {{"error", "this driver's NVML has no events: errors of GPUs go unnoticed"}});
}

// The plugin serves until no pod that is bound to the node needs it any more.
void Leave(agent::Agent& agent, reconcile::Runner& runner, kube::Transport& transport,
           WakeSignal& bell, const Clock& clock) {
  kube::Client client(transport);
  if (const Status left = agent.Leave(runner.view(), client); !left.ok()) {
    Log(LogLevel::kWarn, "failed to reset node allocatable on shutdown",
        {{"error", left.message()}});
  }
  runner.Use(nullptr);  // reads the pods only
  const Time began = clock.Now();
  while (agent.IsNeeded(runner.view(), clock.Now() - began)) {
    if (!runner.Step(clock)) bell.Wait(std::chrono::milliseconds(50));
  }
}

// An error ends the process: without its plugin the kubelet allocates none of the devices, and the
// next start finds the libraries of the new driver.
Status CheckLibrary(const device::NvmlGpus& nvml) {
  if (!nvml.outdated()) return Status::Ok();
  return {Code::kUnavailable,
          "the driver was replaced: this process has the library of the former one and ends, to "
          "start again with that of the new one"};
}

// Serves ResourceClaims on a thread of its own: the agent's loop waits for drivers.
class ClaimThread {
 public:
  ClaimThread(agent::ClaimService& service, WakeSignal& bell, const Clock& clock)
      : service_(service), bell_(bell), clock_(clock), thread_([this] { Run(); }) {}
  ~ClaimThread() {
    stop_ = true;
    bell_.Ring();
    thread_.join();
  }
  ClaimThread(const ClaimThread&) = delete;

 private:
  void Run() {
    while (!stop_) {
      const Time next = service_.Step(clock_.Now());
      const Duration pause = std::max(next - clock_.Now(), Duration::zero());
      bell_.Wait(std::chrono::duration_cast<std::chrono::milliseconds>(pause));
    }
  }

  agent::ClaimService& service_;
  WakeSignal& bell_;
  const Clock& clock_;
  std::atomic<bool> stop_{false};
  std::thread thread_;  // last: uses the others
};

// Events of devices and their plugins, which no watch shows. Thread-safe.
class DeviceEvents {
 public:
  // Both are rung at each event.
  DeviceEvents(WakeSignal& bell, WakeSignal& claims_bell)
      : bell_(bell), claims_bell_(claims_bell) {}
  void Note() {
    happened_ = true;  // before the threads wake
    bell_.Ring();
    claims_bell_.Ring();
  }
  // True if there was one since the last call.
  bool Take() { return happened_.exchange(false); }

 private:
  WakeSignal& bell_;
  WakeSignal& claims_bell_;
  std::atomic<bool> happened_{false};
};

telemetry::NodeSettings SettingsOf(const agent::SharingSettings& sharing,
                                   const device::HostFolders& host) {
  return {sharing.time_slices, sharing.resets != agent::ResetRule::kNever, host};
}

agent::ClaimServiceOptions ClaimOptionsOf(const AgentFlags& flags, const Config& config,
                                          const agent::SharingSettings& sharing) {
  agent::ClaimServiceOptions options = config.claims;
  options.node = flags.node;
  options.host = config.host;
  options.relist_every = config.daemon.relist_every;
  options.time_slices = sharing.time_slices;
  return options;
}

device::NvmlEventOptions KeepIn(XidLog& xids) {
  device::NvmlEventOptions options;
  options.on_xid = [&](int gpu, uint64_t xid, std::string message) {
    xids.Add({SystemClock().Now(), gpu, xid, std::move(message)});
  };
  return options;
}

std::vector<Check> ChecksOf(const LoopReport& report, const AgentDriver& driver) {
  return {{"loop", [&] { return report.Alive(); }, true},
          {"caches", [&] { return report.Synced(); }},
          {"devices", [&] {
             const Status answers = driver.Answers();
             return answers.ok() ? report.Works() : answers;
           }}};
}

// A driver that does not answer may do so later. One that is not usable ends the process early.
Status ReadFirst(device::Backend& backend) {
  const Status read = backend.ListGpus().status();
  return read.code() == Code::kDeadline ? Status::Ok() : read;
}

class UseUntilEnd {
 public:
  UseUntilEnd(StopNotice& stop, device::BoundedGpus& gpus) : stop_(stop) { stop_.Use(&gpus); }
  ~UseUntilEnd() { stop_.Use(nullptr); }
  UseUntilEnd(const UseUntilEnd&) = delete;

 private:
  StopNotice& stop_;
};

std::shared_ptr<device::NvmlGpus> OpenGpus(const device::NvmlLibrary& library,
                                           const gpu::Catalogue& catalogue,
                                           device::GpuHealth& health, XidLog& xids,
                                           const std::string& reset_program) {
  WarnOfUnwatched(library);
  return std::make_shared<device::NvmlGpus>(library, catalogue, health, KeepIn(xids),
                                            device::GpuResetOptions{.program = reset_program});
}

// The parts of the agent that the claim service uses.
struct ClaimParts {
  kube::Transport& transport;
  const gpu::Catalogue& catalogue;
  kubelet::PodResources& pod_resources;
  device::Backend& backend;
  AgentDriver& driver;
  const device::GpuHealth& health;
  const agent::SharingModes& modes;
  Metrics& metrics;
  WakeSignal& bell;
};

agent::ClaimServiceCollaborators CollaboratorsOf(const ClaimParts& parts) {
  agent::ClaimServiceCollaborators collaborators{parts.transport, parts.catalogue,
                                                 parts.pod_resources};
  collaborators.gpus = [&backend = parts.backend] { return backend.ListGpus(); };
  collaborators.make_backend = [&driver = parts.driver] {
    return std::make_unique<device::ForwardingBackend>(driver.gpus());
  };
  collaborators.health = &parts.health;
  collaborators.daemons = agent::DaemonsOf(parts.modes);
  collaborators.metrics = &parts.metrics;
  collaborators.wake = [&bell = parts.bell] { bell.Ring(); };
  return collaborators;
}

reconcile::RunnerOptions RunnerOptionsOf(const AgentFlags& flags, const Config& config,
                                         WakeSignal& bell) {
  reconcile::RunnerOptions options = reconcile::ForNode(flags.node);
  options.relist_every = config.daemon.relist_every;
  options.wake = [&] { bell.Ring(); };
  return options;
}

// REQUIRES: the node's name is known.
Status RunAgent(const AgentFlags& flags, Config& config) {
  // 1. Read the configuration. OutsideEvents must exist before other threads (outside_events.h).
  agent::DevicePluginStrategy& strategy = config.plugins.Choose(config.modes);
  NOS_RETURN_IF_ERROR(agent::UsePlugin(config.modes, strategy.traits()));
  const auto settings = agent::SettingsOf(config.modes, kAllModes);
  NOS_ASSIGN(const gpu::Catalogue catalogue, ReadCatalogue(config.geometries_file));
  NOS_ASSIGN(const kube::ConnectionConfig connection,
             kube::LoadConnection(flags.daemon.kubeconfig, flags.daemon.context));
  const SystemClock clock;
  WakeSignal bell, claims_bell;
  StopNotice stop;
  OutsideEvents events({}, [&] {
    if (events.StopAsked()) stop.Give();
    bell.Ring();
  });
  Metrics metrics;
  Announce("agent", metrics);

  // 2. Open the driver and stack the backends of the sharing modes. The first ListGpus fails early
  //    if the driver is not usable.
  NOS_ASSIGN(const auto library, OpenLibrary(flags, config));
  DeviceEvents happened(bell, claims_bell);
  const auto look = [&] { happened.Note(); };
  device::GpuHealth health;
  health.SetListener(look);
  XidLog xids;
  // Modes end before the health to which their daemons report.
  const agent::SharingModes modes = std::move(config.modes);
  const auto nvml = OpenGpus(*library, catalogue, health, xids, settings.reset_program);
  // The loop waits for the driver at most as long as one of its calls may take.
  LoopReport report;
  AgentDriver driver(nvml, health, {.changed = [&] { report.Wait(); }});
  const UseUntilEnd use(stop, driver.gpus());
  config.pod_resources.mps_shares = strategy.traits().shares;
  kubelet::PodResourcesClient pod_resources(config.pod_resources);
  const auto stack = agent::StackBackends(modes, driver.gpus(),
                                          {catalogue, strategy, pod_resources, health, look});
  device::SharedBackend backend(*stack.back());
  NOS_RETURN_IF_ERROR(ReadFirst(backend));
  // 3. Connect to the API server and start the device plugin, which needs the backends.
  kube::HttpTransport http(connection, HttpOptionsOf(config.daemon));
  kube::MeteredTransport metered(http, metrics);
  const auto plugins = config.plugins.Open(
      {flags.node, metered, pod_resources, backend, modes, config.host, clock, look});

  agent::ClaimService claims(ClaimOptionsOf(flags, config, settings),
                             CollaboratorsOf({metered, catalogue, pod_resources, backend, driver,
                                              health, modes, metrics, claims_bell}));
  // Claims that are left from when they were enabled are served until they end.
  const bool serves = config.claims.enabled || !claims.Released();
  // 4. Create the reconciler. Telemetry and probes start last: they read all of the above.
  kubelet::CgroupFolder cgroups;
  agent::Agent agent(
      config.agent, flags.node, catalogue, backend, pod_resources, *plugins.back(),
      {&health, &metrics, strategy.rules(), modes, [&] { return config.plugins.Handover(); },
       &cgroups, serves ? &claims : nullptr});
  reconcile::MeteredReconciler reconciler(agent, "agent", metrics);
  reconcile::Runner runner(reconciler, metered, RunnerOptionsOf(flags, config, bell));
  NOS_ASSIGN(const auto telemetry,
             AgentTelemetry::Start(config.telemetry,
                                   {flags.node, backend, pod_resources, catalogue, health, xids,
                                    metrics, SettingsOf(settings, config.host)}));
  NOS_ASSIGN(const auto probes, Probes::Serve(
                                    config.daemon.addresses, ChecksOf(report, driver), metrics,
                                    [&] { config.plugins.Measure(metrics); },
                                    MetricsSecurity::Of(flags.daemon.metrics, connection)));
  const ClaimThread claim_thread(claims, claims_bell, clock);
  // 5. Reconcile until shutdown. An event of a device or plugin is not part of any watch, so it
  //    triggers a reconciliation itself.
  RunUntil([&] { return events.StopAsked() || nvml->outdated(); }, runner, bell, clock,
           [&] {
             if (happened.Take()) runner.Poke(clock.Now());
             report.Turn(runner);
           });
  NOS_RETURN_IF_ERROR(CheckLibrary(*nvml));
  // 6. Withdraw the devices before the plugin stops, so that no scheduler uses them.
  Leave(agent, runner, metered, bell, clock);
  driver.Ended();
  return Status::Ok();
}

// Rates are differences of two readings, so it samples twice.
Result<telemetry::NodeSample> SampleMachine(const AgentFlags& flags, const Config& config,
                                            device::Backend& backend) {
  constexpr std::chrono::milliseconds kBetween{500};  // GPM requires 100 ms (nvml.h)
  kubelet::PodResourcesClient pod_resources(config.pod_resources);
  const gpu::Catalogue& catalogue = gpu::Catalogue::Builtin();
  const auto take = [&] {
    return telemetry::TakeSample(
        flags.node, backend, pod_resources, catalogue, nullptr,
        SettingsOf(agent::SettingsOf(config.modes, kAllModes), config.host));
  };
  NOS_RETURN_IF_ERROR(take().status());
  std::this_thread::sleep_for(kBetween);
  NOS_ASSIGN(telemetry::NodeSample sample, take());
  if (config.telemetry.dcgm_url.empty()) return sample;
  NOS_ASSIGN(const auto dcgm, DcgmScraper::For(config.telemetry.dcgm_url));
  NOS_RETURN_IF_ERROR(dcgm->Fill(sample).Within("DCGM exporter (telemetry.dcgmUrl)"));
  return sample;
}

Status PrintMachine(const AgentFlags& flags, const Config& config) {
  NOS_ASSIGN(const auto library, OpenLibrary(flags, config));
  device::NvmlBackend backend(*library, gpu::Catalogue::Builtin());
  NOS_ASSIGN(const auto node, device::Describe(backend, gpu::Catalogue::Builtin()));
  NOS_ASSIGN(const auto sample, SampleMachine(flags, config, backend));
  if (flags.output == "json") {
    Json json = device::DescriptionJson(node);
    json.as_object()["readings"] = telemetry::SampleJson(sample);
    std::cout << WriteJsonPretty(json) << "\n";
  } else {
    std::cout << device::DescriptionText(node) << "\n" << telemetry::SampleText(sample);
  }
  return Status::Ok();
}

int Start(const AgentFlags& flags) {
  if (flags.once != flags.print) {
    return Fail("nos agent", Invalid("--once and --print must be given together"));
  }
  Config config;
  const auto describe = [&](ConfigFields& fields) { DescribeAgent(fields, config); };
  if (const Status read = ReadConfigFile(flags.daemon.config, kKind, describe); !read.ok()) {
    return Fail("nos agent", read);
  }
  if (flags.daemon.print_config) {
    std::cout << PrintConfig(kKind, describe);
    return 0;
  }
  if (!flags.once && flags.node.empty()) {
    return Fail("nos agent",
                Invalid("the name of this node is not known: give --node NAME or set NODE_NAME"));
  }
  SetLogLevelByName(config.daemon.log_level);
  const Status ran = flags.once ? PrintMachine(flags, config) : RunAgent(flags, config);
  if (ran.ok() && !flags.once) Log(LogLevel::kInfo, "stopping nos", {{"command", "agent"}});
  return ran.ok() ? 0 : Fail("nos agent", ran);
}

}  // namespace

void AddAgentCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "agent", "Partition the GPUs of this node as planned (runs on each node)");
  auto flags = std::make_shared<AgentFlags>();
  AddDaemonFlags(*command, flags->daemon);
  command->add_option("--node", flags->node, "Name of this node")
      ->envname("NODE_NAME")
      ->option_text("NAME");
  command->add_flag("--once", flags->once, "Read the GPUs once and exit");
  command->add_flag("--print", flags->print, "Print the state of the GPUs and change nothing");
  command->add_option("-o,--output", flags->output, "Output format: table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->option_text("FORMAT");
  command
      ->add_option("--nvml-library", flags->library,
                   "Default: $NOS_NVML_LIBRARY or libnvidia-ml.so.1")
      ->option_text("FILE");
  command->footer(
      "Examples:\n"
      "  nos agent --once --print -o json\n"
      "  nos agent --print-config > agent.yaml\n"
      "  NODE_NAME=gpu-1 nos agent --config agent.yaml");
  command->callback([&chosen, flags] { chosen.action = [flags] { return Start(*flags); }; });
}

}  // namespace nos::cmd
