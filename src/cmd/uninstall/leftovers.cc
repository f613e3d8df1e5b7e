// nos uninstall: removes what nos leaves in a cluster.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cmd/command.h"
#include "cmd/commands.h"
#include "controllers/cleanup.h"
#include "kube/connection.h"
#include "kube/http_transport.h"

namespace nos::cmd {
namespace {

struct UninstallFlags {
  std::string kubeconfig, context;
  std::vector<std::string> namespaces{"nos-system", "nos-placeholders"};
  bool dry_run = false;
};

Status Run(const UninstallFlags& flags) {
  NOS_ASSIGN(kube::ConnectionConfig config, kube::LoadConnection(flags.kubeconfig, flags.context));
  kube::HttpTransport transport(std::move(config));
  kube::Client client(transport);
  int changes = 0;
  const Status cleaned = controllers::CleanUp({flags.namespaces, flags.dry_run}, client,
                                              [&](const std::string& change) {
                                                std::cout << change << "\n";
                                                ++changes;
                                              });
  if (cleaned.ok() && changes == 0) std::cout << "nothing is left\n";
  return cleaned;
}

}  // namespace

void AddUninstallCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "uninstall", "Remove placeholders, cordons, marks and conditions that nos left in a cluster");
  auto flags = std::make_shared<UninstallFlags>();
  command
      ->add_option("-n,--namespace", flags->namespaces,
                   "Namespaces of nos, in which placeholders are deleted. May be repeated")
      ->option_text("NAMESPACE");
  command->add_flag("--dry-run", flags->dry_run, "Print the changes, and make none");
  AddClusterFlags(*command, flags->kubeconfig, flags->context);
  command->footer(
      "Run it when the chart is removed. GPU instances and their layouts stay.\n"
      "Examples:\n"
      "  nos uninstall --dry-run\n"
      "  nos uninstall -n nos-system -n nos-placeholders");
  RunWhenChosen(*command, chosen, "nos uninstall", [flags] { return Run(*flags); });
}

}  // namespace nos::cmd
