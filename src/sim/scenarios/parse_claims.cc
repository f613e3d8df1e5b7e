#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "sim/scenarios/parse_steps.h"

namespace nos::sim {
namespace {

// Parses "\"an expression\"", which may contain spaces.
Result<std::string> TakeQuoted(Words& words, std::string_view what) {
  NOS_ASSIGN(std::string text, words.Require(what));
  if (!text.starts_with('"')) return words.Expected(what, text);
  while (text.size() < 2 || !text.ends_with('"')) {
    if (words.empty()) return words.Expected("'\"' at the end of the expression", "");
    text += fmt::format(" {}", words.Take());
  }
  return text.substr(1, text.size() - 2);
}

Json Selector(std::string_view expression) {
  return JsonObject{{"cel", JsonObject{{"expression", expression}}}};
}

// Parses "1g.5gb", "2x1g.5gb", "gpu", "class mig.nvidia.com", each with "count N", "all" and
// selectors.
Result<JsonObject> TakeRequest(Words& words) {
  constexpr const char* kWhat = "a profile, 'gpu' or 'class CLASS'";
  NOS_ASSIGN(std::string first, words.Require(kWhat));
  JsonObject request;
  JsonArray selectors;
  const size_t x = first.find('x');
  const auto count = ParseInt(std::string_view(first).substr(0, x));
  if (x != std::string::npos && count) {
    request["count"] = *count;
    first.erase(0, x + 1);
  }
  if (first == "class") {
    NOS_ASSIGN(request["deviceClassName"], words.Require("the name of a device class"));
  } else if (first == "gpu") {
    request["deviceClassName"] = "gpu.nvidia.com";
  } else if (first.find('.') != std::string::npos) {
    request["deviceClassName"] = "mig.nvidia.com";
    selectors.push_back(
        Selector(fmt::format("device.attributes['gpu.nvidia.com'].profile == '{}'", first)));
  } else {
    return words.Expected(kWhat, first);
  }
  while (true) {
    if (words.TakeIf("count")) {
      NOS_ASSIGN(request["count"], words.RequireInt("how many devices"));
    } else if (words.TakeIf("all")) {
      request["allocationMode"] = "All";
    } else if (words.TakeIf("selector")) {
      NOS_ASSIGN(const std::string expression, TakeQuoted(words, "\"an expression\""));
      selectors.push_back(Selector(expression));
    } else if (words.TakeIf("tolerate")) {
      NOS_ASSIGN(const std::string key, words.Require("the key of a taint"));
      request["tolerations"] = JsonArray{JsonObject{{"key", key}, {"operator", "Exists"}}};
    } else {
      break;
    }
  }
  if (!selectors.empty()) request["selectors"] = std::move(selectors);
  return request;
}

// One request with its alternatives: "3g.20gb or 2g.10gb".
Result<JsonObject> TakeRequests(Words& words, size_t number) {
  NOS_ASSIGN(JsonObject exactly, TakeRequest(words));
  JsonObject request = {{"name", fmt::format("r{}", number)}};
  JsonArray alternatives = {exactly};
  while (words.TakeIf("or")) {
    NOS_ASSIGN(JsonObject other, TakeRequest(words));
    alternatives.push_back(std::move(other));
  }
  if (alternatives.size() == 1) {
    request["exactly"] = std::move(exactly);
    return request;
  }
  for (size_t i = 0; i < alternatives.size(); ++i) {
    alternatives[i].get_object()["name"] = fmt::format("a{}", i);
  }
  request["firstAvailable"] = std::move(alternatives);
  return request;
}

// Parses "2x1g.5gb and gpu match gpu.nvidia.com/parentUUID".
Result<Json> TakeClaimSpec(Words& words) {
  JsonArray requests, constraints;
  do {
    NOS_ASSIGN(JsonObject request, TakeRequests(words, requests.size()));
    requests.push_back(std::move(request));
  } while (words.TakeIf("and"));
  while (words.Peek() == "match" || words.Peek() == "distinct") {
    const std::string field = words.Take() == "match" ? "matchAttribute" : "distinctAttribute";
    NOS_ASSIGN(const std::string attribute, words.Require("DOMAIN/ATTRIBUTE"));
    constraints.push_back(JsonObject{{field, attribute}});
  }
  JsonObject devices = {{"requests", std::move(requests)}};
  if (!constraints.empty()) devices["constraints"] = std::move(constraints);
  return Json(JsonObject{{"devices", std::move(devices)}});
}

std::vector<std::string> Parts(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (const std::string_view part : Split(text, separator)) parts.emplace_back(part);
  return parts;
}

}  // namespace

Result<Action> ParseClaim(Words& words) {
  OnClaims put{.kind = "ResourceClaim", .name = {}, .spec = {}, .devices = {}};
  NOS_ASSIGN(put.name, words.Require("the name of a claim"));
  NOS_ASSIGN(put.spec, TakeClaimSpec(words));
  return Action(std::move(put));
}

Result<Action> ParseClaimTemplate(Words& words) {
  OnClaims put{.kind = "ResourceClaimTemplate", .name = {}, .spec = {}, .devices = {}};
  NOS_ASSIGN(put.name, words.Require("the name of a claim template"));
  NOS_ASSIGN(Json spec, TakeClaimSpec(words));
  put.spec = JsonObject{{"spec", std::move(spec)}};
  return Action(std::move(put));
}

Result<Action> ParseDeviceClass(Words& words) {
  OnClaims put{.kind = "DeviceClass", .name = {}, .spec = JsonObject(), .devices = {}};
  NOS_ASSIGN(put.name, words.Require("the name of a device class"));
  JsonArray selectors;
  while (words.TakeIf("selector")) {
    NOS_ASSIGN(const std::string expression, TakeQuoted(words, "\"an expression\""));
    selectors.push_back(Selector(expression));
  }
  JsonObject spec;
  if (!selectors.empty()) spec["selectors"] = std::move(selectors);
  if (words.TakeIf("serves")) {
    NOS_ASSIGN(spec["extendedResourceName"], words.Require("the name of an extended resource"));
  }
  put.spec = std::move(spec);
  return Action(std::move(put));
}

Result<Action> ParseDeviceTaint(Words& words) {
  OnClaims put{.kind = "DeviceTaintRule", .name = {}, .spec = {}, .devices = {}};
  NOS_ASSIGN(put.name, words.Require("a name for the taint"));
  NOS_ASSIGN(const std::string where, words.Require("NODE or NODE/DEVICE"));
  NOS_ASSIGN(const std::string text, words.Require("KEY:EFFECT"));
  const size_t slash = std::min(where.find('/'), where.size()), colon = text.find(':');
  if (colon == std::string::npos || colon == 0) return words.Expected("KEY:EFFECT", text);
  JsonObject selector = {{"pool", where.substr(0, slash)}};
  if (slash < where.size()) selector["device"] = where.substr(slash + 1);
  put.spec = JsonObject{
      {"deviceSelector", std::move(selector)},
      {"taint", JsonObject{{"key", text.substr(0, colon)}, {"effect", text.substr(colon + 1)}}}};
  return Action(std::move(put));
}

Result<Action> ParseAllocate(Words& words) {
  OnClaims allocate{.verb = OnClaims::Verb::kAllocate, .name = {}, .spec = {}, .devices = {}};
  NOS_ASSIGN(allocate.name, words.Require("the name of a claim"));
  NOS_ASSIGN(const std::string devices, words.Require("NODE/DEVICE"));
  allocate.devices = Parts(devices, ',');
  for (const std::string& device : allocate.devices) {
    if (device.find('/') == std::string::npos) return words.Expected("NODE/DEVICE", device);
  }
  return Action(std::move(allocate));
}

std::string KindOfClaims(std::string_view word) {
  if (word == "claim") return "ResourceClaim";
  if (word == "claim-template") return "ResourceClaimTemplate";
  if (word == "device-class") return "DeviceClass";
  return word == "device-taint" ? "DeviceTaintRule" : "";
}

Result<Action> ParseClaimExpectation(Words& words) {
  constexpr const char* kOutcomes = "'allocated', 'pending', 'gone' or 'device'";
  ExpectClaim expect;
  NOS_ASSIGN(expect.claim, words.Require("the name of a claim or pod"));
  NOS_ASSIGN(expect.outcome, words.Require(kOutcomes));
  if (expect.outcome == "device") {
    NOS_ASSIGN(const std::string devices, words.Require("NODE/DEVICE"));
    for (const std::string& set : Parts(devices, '|')) {
      expect.alternatives.push_back(Parts(set, ','));
    }
  } else if (expect.outcome == "allocated") {
    if (words.TakeIf("on")) {
      NOS_ASSIGN(expect.node, words.Require("a node name"));
    }
  } else if (expect.outcome != "pending" && expect.outcome != "gone") {
    return words.Expected(kOutcomes, expect.outcome);
  }
  return Action(std::move(expect));
}

}  // namespace nos::sim
