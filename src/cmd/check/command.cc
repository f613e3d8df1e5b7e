// nos check: is this cluster ready for nos, or why not; with --node, is this machine. Changes
// nothing, except for --try on an idle GPU.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "cmd/catalogue_flag.h"
#include "cmd/clustercheck/reader.h"
#include "cmd/clustercheck/topics.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/findings/report.h"
#include "cmd/terminal.h"
#include "kube/connection.h"
#include "kube/http_transport.h"

namespace nos::cmd {
namespace {

constexpr size_t kWidth = 100;

struct CheckFlags {
  std::string kubeconfig, context, ns, output = "text", catalogue;
};

int Print(const std::vector<Finding>& findings, const std::string& output) {
  if (output == "json") {
    std::cout << WriteJsonPretty(FindingsJson(findings)) << "\n";
  } else {
    std::cout << FindingsText(findings, std::clamp<size_t>(TableWidth(), 60, kWidth));
  }
  return FindingsExitCode(findings);
}

Result<std::vector<Finding>> LookAtCluster(const CheckFlags& flags,
                                           const gpu::Catalogue& catalogue) {
  NOS_ASSIGN(kube::ConnectionConfig config, kube::LoadConnection(flags.kubeconfig, flags.context));
  kube::HttpTransport transport(std::move(config));
  kube::Client client(transport);
  NOS_ASSIGN(Snapshot snapshot, ReadSnapshot(client, flags.ns, SystemClock().Now()));
  snapshot.own_version = NOS_VERSION;
  snapshot.catalogue = &catalogue;
  return CheckCluster(snapshot);
}

int RunCheck(const CheckFlags& flags) {
  const auto catalogue = ReadCatalogue(flags.catalogue);
  if (!catalogue.ok()) return Fail("nos check", catalogue.status());
  const auto findings = LookAtCluster(flags, *catalogue);
  if (!findings.ok()) return Fail("nos check", findings.status());
  return Print(*findings, flags.output);
}

}  // namespace

void AddCheckCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "check", "Check that a cluster, or a machine with GPUs, is ready for nos");
  auto flags = std::make_shared<CheckFlags>();
  command->add_option("-n,--namespace", flags->ns, "Namespace of nos; default: found by its pods")
      ->option_text("NAMESPACE");
  command->add_option("-o,--output", flags->output, "Output format: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text("FORMAT");
  AddClusterFlags(*command, flags->kubeconfig, flags->context);
  AddCatalogueFlag(*command, flags->catalogue);
  command->footer(
      "Exit codes: 0 nothing failed (warnings are allowed), 1 something failed, 2 invalid flags.\n"
      "Examples:\n"
      "  nos check\n"
      "  nos check -n nos-system -o json");
  command->callback([&chosen, flags] { chosen.action = [flags] { return RunCheck(*flags); }; });
}

}  // namespace nos::cmd
