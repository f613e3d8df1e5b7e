// A report of `nos get`: objects, each with its lines in a table and its JSON, in the formats and
// orders that kubectl has.
//
//   Printout out({{"NAME"}, {"AGE"}, {"SCHEDULER", kWide}});
//   out.Add({"pod/team-a/trainer", {{"trainer", "5s", "nos-scheduler"}}, JsonObject{...},
//   created}); NOS_RETURN_IF_ERROR(out.SortBy("age")); std::cout <<
//   out.Table(kNarrow).ToString(width);
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/table.h"
#include "codec/json.h"

namespace nos::cmd {

enum class Width { kNarrow, kWide };  // kWide: with the columns of -o wide

struct Column {
  std::string name;
  Width from = Width::kNarrow;  // the narrowest table that has it
};

struct PrintedObject {
  std::string name;                             // as -o name prints it: "gpu/node-1/0"
  std::vector<std::vector<std::string>> lines;  // a cell for each column
  Json json;
  std::optional<Time> created{};
};

class Printout {
 public:
  explicit Printout(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void Add(PrintedObject object) { objects_.push_back(std::move(object)); }
  // By a key of the JSON ("node"), by "age", or by the field paths of kubectl that say the same
  // ("{.metadata.name}", ".metadata.creationTimestamp"). Numbers are compared as numbers, texts
  // with their numbers in order ("node-2" before "node-10"), objects without the key come last.
  // The oldest object comes first by age, as with kubectl. Error: kInvalid, names the keys.
  Status SortBy(std::string_view key);

  TextTable Table(Width width = Width::kNarrow) const;
  JsonArray ToJson() const;
  const std::vector<PrintedObject>& objects() const { return objects_; }

  std::string total{};                  // printed below the table; "" for none
  std::vector<std::string> warnings{};  // one sentence each

 private:
  std::vector<Column> columns_;
  std::vector<PrintedObject> objects_;
};

}  // namespace nos::cmd
