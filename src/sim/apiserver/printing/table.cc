#include "sim/apiserver/printing/table.h"

#include <fmt/core.h>

namespace nos::sim {
namespace {

Json DescribeColumn(const Column& column) {
  return {{"name", column.name},
          {"type", column.type},
          {"format", column.format},
          {"description", column.name},
          {"priority", column.priority}};
}

Json RowObjectOf(const Json& object, RowObject row_object) {
  if (row_object == RowObject::kObject) return object;
  return PartialMetadata(object);
}

}  // namespace

Json PartialMetadata(const Json& object) {
  const Json* metadata = Find(object, "metadata");
  return {{"kind", "PartialObjectMetadata"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", metadata == nullptr ? Json(JsonObject()) : *metadata}};
}

Json AgeCell(const Json* timestamp, Time now) {
  if (timestamp == nullptr || !timestamp->is_string()) return "<unknown>";
  const auto time = ParseTime(View(timestamp->get_string()));
  if (!time.ok()) return "<unknown>";
  return boost::json::string(FormatAge(now - *time));
}

Json MakeTable(const ResourceType& type, const std::vector<Json>& objects, Json metadata,
               RowObject row_object, Time now) {
  const std::vector<Column> columns = ColumnsOf(type);
  JsonArray definitions;
  for (const Column& column : columns) definitions.push_back(DescribeColumn(column));
  JsonArray rows;
  for (const Json& object : objects) {
    JsonArray cells;
    for (const Column& column : columns) cells.push_back(column.cell(object, now));
    JsonObject row{{"cells", std::move(cells)}};
    if (row_object != RowObject::kNone) row["object"] = RowObjectOf(object, row_object);
    rows.push_back(std::move(row));
  }
  return {{"kind", "Table"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", std::move(metadata)},
          {"columnDefinitions", std::move(definitions)},
          {"rows", std::move(rows)}};
}

}  // namespace nos::sim
