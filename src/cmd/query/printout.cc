#include "cmd/query/printout.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace nos::cmd {
namespace {

// "{.metadata.name}" becomes "name", ".status.phase" "phase".
std::string KeyOf(std::string_view path) {
  if (path.starts_with('{') && path.ends_with('}')) path = path.substr(1, path.size() - 2);
  if (const size_t dot = path.rfind('.'); dot != std::string_view::npos)
    path = path.substr(dot + 1);
  if (path == "creationTimestamp") return "age";
  if (path == "nodeName") return "node";
  return std::string(path);
}

// Objects without the key come last.
int Compare(const Json* a, const Json* b) {
  if (a == nullptr || b == nullptr) return (a == nullptr ? 1 : 0) - (b == nullptr ? 1 : 0);
  if (a->is_number() && b->is_number()) {
    const auto left = a->to_number<double>(), right = b->to_number<double>();
    return left < right ? -1 : left > right ? 1 : 0;
  }
  const auto text = [](const Json& value) {
    return value.is_string() ? std::string(View(value.get_string())) : WriteJson(value);
  };
  return CompareNaturally(text(*a), text(*b));
}

}  // namespace

Status Printout::SortBy(std::string_view path) {
  const std::string key = KeyOf(path);
  if (key == "age") {
    std::ranges::stable_sort(objects_, {}, [](const PrintedObject& object) {
      return object.created.value_or(Time::max());
    });
    return Status::Ok();
  }
  std::set<std::string> known{"age"};
  for (const PrintedObject& object : objects_) {
    for (const auto& [name, value] : object.json.as_object()) {
      if (!value.is_array() && !value.is_object()) known.emplace(name);
    }
  }
  if (!objects_.empty() && !known.contains(key)) {
    return Invalid("cannot sort by '" + std::string(path) + "'; the keys are " +
                   Join(std::vector<std::string>(known.begin(), known.end()), ", "));
  }
  std::ranges::stable_sort(objects_, [&](const PrintedObject& a, const PrintedObject& b) {
    return Compare(Find(a.json, key), Find(b.json, key)) < 0;
  });
  return Status::Ok();
}

TextTable Printout::Table(Width width) const {
  const auto shown = [&](size_t column) { return columns_[column].from <= width; };
  std::vector<std::string> header;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (shown(i)) header.push_back(columns_[i].name);
  }
  TextTable table(std::move(header));
  for (const PrintedObject& object : objects_) {
    for (const std::vector<std::string>& line : object.lines) {
      std::vector<std::string> cells;
      for (size_t i = 0; i < columns_.size(); ++i) {
        if (shown(i)) cells.push_back(line[i]);
      }
      table.AddRow(std::move(cells));
    }
  }
  return table;
}

JsonArray Printout::ToJson() const {
  JsonArray json;
  for (const PrintedObject& object : objects_) json.push_back(object.json);
  return json;
}

}  // namespace nos::cmd
