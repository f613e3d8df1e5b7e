#include "cmd/commands.h"

namespace {

constexpr const char* kExamples =
    "  nos sandbox                                    run a cluster with virtual GPUs\n"
    "  kubectl get nodes,pods -A -o yaml | nos plan -f -\n"
    "                                                 show what nos would do on your cluster\n"
    "  nos simulate chaos --seed 17                   test the controllers under faults";

void AddCommands(CLI::App& root, nos::cmd::Chosen& chosen) {
  nos::cmd::AddSandboxCommand(root, chosen);
  nos::cmd::AddPlanCommand(root, chosen);
  nos::cmd::AddSimulateCommand(root, chosen);
  nos::cmd::AddStatusCommand(root, chosen);
  nos::cmd::AddCostCommand(root, chosen);
  nos::cmd::AddReportCommand(root, chosen);
  nos::cmd::AddGetCommand(root, chosen);
  nos::cmd::AddStoriesCommand(root, chosen);
  nos::cmd::AddTopCommand(root, chosen);
  nos::cmd::AddExplainCommand(root, chosen);
  nos::cmd::AddCheckCommand(root, chosen);
  nos::cmd::AddPartitionerCommand(root, chosen);
  nos::cmd::AddAgentCommand(root, chosen);
  nos::cmd::AddSchedulerCommand(root, chosen);
  nos::cmd::AddOperatorCommand(root, chosen);
  nos::cmd::AddAutoscalerCommand(root, chosen);
  nos::cmd::AddMpsCommand(root, chosen);
  nos::cmd::AddHoldCommand(root, chosen);
  nos::cmd::AddTelemetryCommand(root, chosen);
  nos::cmd::AddUninstallCommand(root, chosen);
  nos::cmd::AddVersionCommand(root, chosen);
  nos::cmd::AddCompletionCommand(root, chosen);
}

}  // namespace

int main(int argc, char** argv) {
  return nos::cmd::Main(
      {"nos", "nos shares the GPUs of a Kubernetes cluster between pods by partitioning them.",
       kExamples, AddCommands},
      argc, argv);
}
