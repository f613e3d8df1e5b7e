// Shell completion, generated from the declared commands so that it always matches them.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "cmd/command.h"
#include "cmd/commands.h"

namespace nos::cmd {
namespace {

struct Words {
  std::string path;   // "nos simulate chaos", or with an option that takes a value: "nos plan -o"
  std::string words;  // words that may follow
  bool files;         // a file name may follow too
  std::string kind;   // names of objects of this kind may follow: "pods"
};

// The kind of an option whose type name is "<pods>".
std::string KindOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.starts_with('<') && type.ends_with('>') ? type.substr(1, type.size() - 2) : "";
}

// Values that an option accepts if its type name lists a set, such as "{table,json}", or a set or a
// file, such as "{demo,none}FILE".
std::string Values(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return "";
  std::string values = type.substr(open + 1, close - open - 1);
  std::replace(values.begin(), values.end(), ',', ' ');
  return values;
}

// Commands that are listed in help; deprecated commands and options have no group.
std::vector<const CLI::App*> Shown(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

void Collect(const CLI::App& app, const std::string& path, std::vector<Words>& out) {
  std::string words, kind;
  for (const CLI::App* sub : Shown(app)) {
    words += sub->get_name() + " ";
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    const bool takes_value = option->get_items_expected_max() > 0;
    const auto add = [&](const std::string& flag) {
      words += flag + " ";
      if (!takes_value) return;
      const std::string values = Values(*option);
      const bool files = values.empty() || option->get_type_name().ends_with("FILE");
      out.push_back({fmt::format("{} {}", path, flag), values, files, ""});
    };
    for (const std::string& name : option->get_lnames()) add("--" + name);
    for (const std::string& name : option->get_snames()) add("-" + name);
    if (option->get_positional()) {
      words += Values(*option) + " ";
      kind = KindOf(*option);
    }
  }
  if (app.get_parent() == nullptr) words += "help ";
  out.push_back({path, words, kind.empty(), kind});
  for (const CLI::App* sub : Shown(app)) {
    Collect(*sub, path + " " + sub->get_name(), out);
  }
}

// `nos help` takes names of commands as arguments.
void CollectHelp(const CLI::App& app, const std::string& path, std::vector<Words>& out) {
  std::string words;
  for (const CLI::App* sub : Shown(app)) {
    words += sub->get_name() + " ";
    CollectHelp(*sub, path + " " + sub->get_name(), out);
  }
  out.push_back({path, words, false, ""});
}

// Every shell uses the same function: it looks up the words after the longest known command path.
std::string CaseTable(const std::vector<Words>& all) {
  std::string table;
  for (const Words& entry : all) {
    const std::string names = entry.kind.empty() ? "" : "|'" + entry.path + " '*";
    table += "    '" + entry.path + "'" + names + ") words='" + entry.words + "'" +
             (entry.files ? "" : " files=") + (entry.kind.empty() ? "" : " kind=" + entry.kind) +
             " ;;\n";
  }
  return table;
}

// Options that take a value, as one shell pattern.
std::string Patterns(const std::vector<Words>& all) {
  std::string patterns;
  for (const Words& entry : all) {
    if (entry.path.find(" -") == std::string::npos) continue;
    patterns += (patterns.empty() ? "      '" : "|'") + entry.path + "'";
  }
  return patterns + ")\n";
}

std::string BashScript(const std::vector<Words>& all) {
  // Names come from the cluster that the command line names, within two seconds.
  return "# bash completion for nos; load with: source <(nos completion bash)\n"
         "_nos_names() {\n"
         "  local at flags=()\n"
         "  for ((at = 1; at + 1 < COMP_CWORD; at++)); do\n"
         "    case ${COMP_WORDS[at]} in --kubeconfig | --context | -n | --namespace)\n"
         "      flags+=(\"${COMP_WORDS[at]}\" \"${COMP_WORDS[at + 1]}\") ;;\n"
         "    esac\n"
         "  done\n"
         "  timeout 2 nos get \"$1\" -o name \"${flags[@]}\" 2>/dev/null | cut -d/ -f2-\n"
         "}\n"
         "_nos() {\n"
         "  local path=nos word words= files=yes kind=\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case $word in -*) break ;; esac\n"
         "    path=\"$path $word\"\n"
         "  done\n"
         "  case ${COMP_WORDS[COMP_CWORD-1]} in\n"
         "    -*) case \"$path ${COMP_WORDS[COMP_CWORD-1]}\" in\n" +
         Patterns(all) +
         "      path=\"$path ${COMP_WORDS[COMP_CWORD-1]}\" ;; esac ;;\n"
         "  esac\n"
         "  case $path in\n" +
         CaseTable(all) +
         "  esac\n"
         "  [ -z \"$kind\" ] || words=\"$words $(_nos_names \"$kind\")\"\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "  [ ${#COMPREPLY[@]} -gt 0 ] || [ -z \"$files\" ] || COMPREPLY=($(compgen -f -- "
         "\"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "}\n"
         "complete -F _nos nos\n";
}

std::string ZshScript(const std::vector<Words>& all) {
  return "# zsh completion for nos; load with: source <(nos completion zsh)\n"
         "autoload -Uz bashcompinit && bashcompinit\n" +
         BashScript(all);
}

std::string FishScript(const std::vector<Words>& all) {
  std::string script = "# fish completion for nos; load with: nos completion fish | source\n";
  for (const Words& entry : all) {
    const size_t flag = entry.path.find(" --");
    if (flag == std::string::npos && entry.path.find(" -") != std::string::npos) continue;  // -o
    if (flag != std::string::npos && entry.words.empty())
      continue;  // fish completes file names itself
    script += "complete -c nos -n 'string match -rq \"^" + entry.path.substr(0, flag) +
              "( -.*)?\\$\" (commandline -poc | string join \" \")'";
    if (flag != std::string::npos) {
      script += " -l " + entry.path.substr(flag + 3) + (entry.files ? " -r" : " -x");
    }
    if (flag == std::string::npos && !entry.files) script += " -f";
    script += " -a '" + entry.words + "'\n";
    if (!entry.kind.empty()) {
      script += "complete -c nos -f -n 'string match -rq \"^" + entry.path +
                "( .*)?\\$\" (commandline -poc | string join \" \")' -a '(timeout 2 nos get " +
                entry.kind + " -o name 2>/dev/null | string replace -r \"^[^/]*/\" \"\")'\n";
    }
  }
  return script;
}

}  // namespace

void AddCompletionCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand("completion", "Print a shell completion script");
  command->footer("Example:\n  source <(nos completion bash)");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "Shell: bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&root, &chosen, shell] {
    chosen.action = [&root, shell] {
      std::vector<Words> all;
      Collect(root, "nos", all);
      CollectHelp(root, "nos help", all);
      std::cout << (*shell == "bash"  ? BashScript(all)
                    : *shell == "zsh" ? ZshScript(all)
                                      : FishScript(all));
      return 0;
    };
  });
}

}  // namespace nos::cmd
