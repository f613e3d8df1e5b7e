#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "base/text.h"
#include "cmd/audit/cluster_audit.h"
#include "cmd/cli/html_page.h"

namespace nos::cmd {
namespace {

constexpr size_t kNodesNamed = 8;

std::string Counted(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::vector<std::string> NamesThatMayGo(const Audit& audit) {
  std::vector<std::string> names;
  for (const AuditedNode& node : audit.nodes) {
    if (node.may_go) names.push_back(node.name);
  }
  return names;
}

// "3 of 12 nodes could go: a, b, c".
std::string NodesSentence(const Audit& audit) {
  std::vector<std::string> names = NamesThatMayGo(audit);
  const size_t all = names.size();
  if (all == 0) return fmt::format("all {} are needed", Counted(audit.nodes.size(), "node"));
  std::string text = fmt::format("{} of {} could go", all, Counted(audit.nodes.size(), "node"));
  names.resize(std::min(names.size(), kNodesNamed));
  text += ": " + Join(names, ", ");
  if (all > kNodesNamed) text += fmt::format(" and {} more", all - kNodesNamed);
  return text;
}

std::string RunningSentence(const Audit& audit) {
  return fmt::format("{} on {} fit on {}", Counted(audit.running, "running pod"),
                     Counted(audit.gpus, "GPU"), audit.gpus_needed);
}

std::string PendingSentence(const Audit& audit) {
  if (audit.pending == 0) return "no pod waits for GPUs";
  return fmt::format("{} of {} would start", audit.starting, Counted(audit.pending, "waiting pod"));
}

std::vector<std::string> NamesToLabel(const Audit& audit) {
  std::vector<std::string> names;
  for (const AuditedNode& node : audit.nodes) {
    if (node.known && !node.labelled) names.push_back(node.name);
  }
  return names;
}

// A row of slots, as a bar of blocks.
std::string GpuBar(const AuditedGpu& gpu) {
  std::string bar = fmt::format("<div class=\"gpu\"><span>GPU {} {} {}</span><div class=\"bar\">",
                                gpu.index, EscapeHtml(gpu.model), EscapeHtml(gpu.mode));
  const double slots = std::max(1, gpu.slots);
  for (const AuditedGpu::Slice& slice : gpu.slices) {
    bar += fmt::format("<i style=\"left:{:.2f}%;width:{:.2f}%\" title=\"{} {}\">{}</i>",
                       100 * slice.start / slots, 100 * slice.size / slots, EscapeHtml(slice.pod),
                       EscapeHtml(slice.profile),
                       EscapeHtml(slice.pod.substr(slice.pod.find('/') + 1)));
  }
  return bar + "</div></div>\n";
}

constexpr std::string_view kStyle =
    ".node{border:1px solid #d5d9de;border-radius:8px;padding:.6rem 1rem;margin:.6rem 0}"
    ".node.goes{opacity:.55}"
    ".gpu{display:flex;gap:.8rem;align-items:center}.gpu span{flex:0 0 15rem;font-size:.85rem}"
    ".bar{position:relative;flex:1;height:1.3rem;background:#eef0f2;border-radius:4px;margin:."
    "15rem 0}"
    ".bar i{position:absolute;top:0;bottom:0;background:#1f7a4d;color:#fff;font:11px/1.3rem "
    "system-ui;"
    "overflow:hidden;white-space:nowrap;border-right:1px solid "
    "#fff;box-sizing:border-box;padding:0 3px}"
    "@media(prefers-color-scheme:dark){.node{border-color:#3a4148}.bar{background:#252a2f}}";

}  // namespace

std::string ToText(const Audit& audit, size_t width) {
  std::string text;
  const auto add = [&](const std::string& line) {
    text += Truncate(Printable(line), width) + "\n";
  };
  add(RunningSentence(audit));
  add(NodesSentence(audit));
  add(PendingSentence(audit));
  if (!audit.starting_pods.empty()) {
    std::vector<std::string> some = audit.starting_pods;
    some.resize(std::min(some.size(), kNodesNamed));
    const size_t more = audit.starting_pods.size() - some.size();
    add("  " + Join(some, ", ") + (more > 0 ? fmt::format(" and {} more", more) : ""));
  }
  text += "\nAssumptions\n";
  for (const std::string& sentence : audit.assumptions) add("  " + sentence);
  const std::vector<std::string> names = NamesToLabel(audit);
  if (!names.empty()) {
    add("");
    add(fmt::format(
        "To let nos share the GPUs of {}, install it, then",
        names.size() == audit.nodes.size() ? "all nodes" : Counted(names.size(), "node")));
    // One command for each node keeps lines short and can be copied in parts.
    for (size_t i = 0; i < std::min(names.size(), kNodesNamed); ++i) {
      add("  kubectl label node " + names[i] + " nos.nebuly.com/gpu-partitioning=hybrid");
    }
    if (names.size() > kNodesNamed) add(fmt::format("  and {} more", names.size() - kNodesNamed));
  }
  return text;
}

Json ToJson(const Audit& audit) {
  JsonArray nodes, assumptions, starting;
  for (const AuditedNode& node : audit.nodes) {
    JsonArray gpus;
    for (const AuditedGpu& gpu : node.gpus) {
      JsonArray slices;
      for (const AuditedGpu::Slice& slice : gpu.slices) {
        slices.push_back(
            JsonObject{{"profile", slice.profile}, {"start", slice.start}, {"pod", slice.pod}});
      }
      gpus.push_back(JsonObject{{"index", gpu.index},
                                {"model", gpu.model},
                                {"mode", gpu.mode},
                                {"slices", std::move(slices)}});
    }
    nodes.push_back(JsonObject{{"name", node.name},
                               {"labelled", node.labelled},
                               {"modelKnown", node.known},
                               {"podsNow", node.pods_now},
                               {"mayGo", node.may_go},
                               {"gpus", std::move(gpus)}});
  }
  for (const std::string& sentence : audit.assumptions) assumptions.emplace_back(sentence);
  for (const std::string& pod : audit.starting_pods) starting.emplace_back(pod);
  return JsonObject{{"gpus", audit.gpus},
                    {"gpusNeeded", audit.gpus_needed},
                    {"runningPods", audit.running},
                    {"misfits", audit.misfits},
                    {"waitingPods", audit.pending},
                    {"startingPods", std::move(starting)},
                    {"nodesThatMayGo", audit.NodesThatMayGo()},
                    {"complete", audit.complete},
                    {"assumptions", std::move(assumptions)},
                    {"nodes", std::move(nodes)}};
}

std::string ToHtml(const Audit& audit) {
  std::string html = fmt::format(
      "<div class=\"figures\">"
      "<div><b>{} of {}</b>GPUs are needed by the {}</div>"
      "<div><b>{} of {}</b>nodes could go</div>"
      "<div><b>{} of {}</b>waiting pods would start</div></div>\n",
      audit.gpus_needed, audit.gpus, Counted(audit.running, "running pod"), audit.NodesThatMayGo(),
      audit.nodes.size(), audit.starting, audit.pending);
  html += "<h2>Assumptions</h2>\n<ul>\n";
  for (const std::string& sentence : audit.assumptions) {
    html += "<li>" + EscapeHtml(sentence) + "</li>\n";
  }
  html += "</ul>\n";
  const std::vector<std::string> names = NamesToLabel(audit);
  if (!names.empty()) {
    html += "<h2>Labels</h2>\n<pre>";
    for (const std::string& name : names) {
      html +=
          "kubectl label node " + EscapeHtml(name) + " nos.nebuly.com/gpu-partitioning=hybrid\n";
    }
    html += "</pre>\n";
  }
  html += "<h2>The cluster, packed by nos</h2>\n";
  for (const AuditedNode& node : audit.nodes) {
    html += fmt::format("<div class=\"node{}\"><b>{}</b> {}\n", node.may_go ? " goes" : "",
                        EscapeHtml(node.name),
                        node.may_go   ? "not needed"
                        : !node.known ? "model not known: GPUs are used whole only"
                                      : "");
    for (const AuditedGpu& gpu : node.gpus) {
      if (!node.may_go) html += GpuBar(gpu);
    }
    html += "</div>\n";
  }
  return HtmlPage("GPU audit", kStyle, html);
}

}  // namespace nos::cmd
