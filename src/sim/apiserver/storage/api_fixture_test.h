// Fixture of the server's tests: a server with a manual clock, driven by JSON text.
#pragma once

#include <gtest/gtest.h>

#include "sim/api_server.h"

namespace nos::sim {

inline Json FromText(std::string_view text) {
  auto parsed = ParseJson(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status().ToString() << "\n" << text;
  return parsed.ok() ? std::move(*parsed) : Json();
}

class ApiServerTest : public testing::Test {
 protected:
  static constexpr char kPodsPath[] = "/api/v1/namespaces/default/pods";
  static constexpr char kMaps[] = "/api/v1/namespaces/default/configmaps";

  kube::ApiResponse Send(std::string_view method, std::string_view target, Json body = nullptr,
                         std::string_view type = "application/json") {
    kube::ApiRequest request = Request(target);
    request.method = method;
    request.body = std::move(body);
    request.content_type = type;
    request.accept = accept_;
    return server_->Do(request).value();
  }
  kube::ApiResponse Get(std::string_view target) { return Send("GET", target); }
  kube::ApiResponse Post(std::string_view target, std::string_view body) {
    return Send("POST", target, FromText(body));
  }
  kube::ApiResponse Put(std::string_view target, const Json& body) {
    return Send("PUT", target, body);
  }
  kube::ApiResponse Delete(std::string_view target, std::string_view options = "null") {
    return Send("DELETE", target, FromText(options));
  }
  // `kind`: "merge", "json", "strategic" or "apply".
  kube::ApiResponse Patch(std::string_view target, std::string_view kind, std::string_view body) {
    const std::string type = kind == "merge"       ? "application/merge-patch+json"
                             : kind == "json"      ? "application/json-patch+json"
                             : kind == "strategic" ? "application/strategic-merge-patch+json"
                                                   : "application/apply-patch+yaml";
    return Send("PATCH", target, FromText(body), type);
  }
  std::unique_ptr<kube::WatchStream> Watch(std::string_view target) {
    auto watch = server_->Watch(Request(target));
    EXPECT_TRUE(watch.ok()) << watch.status().ToString();
    return watch.ok() ? std::move(*watch) : nullptr;
  }

  kube::ApiResponse AddPod(const std::string& name, const std::string& extra_spec = "",
                           const std::string& labels = "{}", const std::string& extra_meta = "") {
    return Post(kPodsPath, R"({"metadata":{"name":")" + name + R"(","labels":)" + labels +
                               extra_meta + R"(},"spec":{"containers":[{"name":"c","image":"i"}])" +
                               extra_spec + "}}");
  }
  void Bind(const std::string& pod, const std::string& node) {
    EXPECT_EQ(
        Post(kPodsPath + ("/" + pod + "/binding"), R"({"target":{"name":")" + node + R"("}})").code,
        201);
  }
  static std::string Reason(const kube::ApiResponse& response) {
    return std::string(FindString(response.body, "reason"));
  }
  static std::vector<std::string> Names(const kube::ApiResponse& list) {
    std::vector<std::string> names;
    const Json* items = Find(list.body, "items");
    if (items == nullptr) return names;
    for (const Json& item : items->get_array()) {
      names.emplace_back(FindString(item, "metadata", "name"));
    }
    return names;
  }
  // All pending events, as "ADDED a".
  static std::vector<std::string> Read(kube::WatchStream& watch) {
    std::vector<std::string> events;
    while (auto event = watch.Next()) {
      std::string name(FindString(event->object, "metadata", "name"));
      if (event->type == "ERROR") name = FindString(event->object, "reason");
      events.push_back(event->type + (name.empty() ? "" : " " + name));
    }
    return events;
  }

  void Restart(const ApiServerOptions& options) {
    server_ = std::make_unique<ApiServer>(clock_, options);
  }

  ManualClock clock_{ParseTime("2026-01-02T03:04:05Z").value()};
  std::unique_ptr<ApiServer> server_ = std::make_unique<ApiServer>(clock_);
  std::string accept_;

 private:
  static kube::ApiRequest Request(std::string_view target) {
    kube::ApiRequest request;
    request.method = "GET";
    const size_t mark = target.find('?');
    request.path = target.substr(0, mark);
    std::string_view rest = mark == std::string_view::npos ? "" : target.substr(mark + 1);
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('&'), rest.size());
      const std::string_view pair = rest.substr(0, end);
      const size_t equals = pair.find('=');
      request.query.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
      rest.remove_prefix(std::min(rest.size(), end + 1));
    }
    return request;
  }
};

}  // namespace nos::sim
