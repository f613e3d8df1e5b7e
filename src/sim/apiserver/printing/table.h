// metav1.Table: what `kubectl get` prints. The server renders the cells; kubectl only aligns them.
#pragma once

#include <functional>

#include "base/clock.h"
#include "sim/apiserver/schemas/types.h"
#include "sim/apiserver/storage/watch_hub.h"

namespace nos::sim {

struct Column {
  std::string name;
  std::string type = "string";
  std::string format;  // "name" marks the column that names the object
  int priority = 0;    // 1: only with -o wide
  std::function<Json(const Json& object, Time now)> cell;
};

// The columns of the real server for pods, nodes and the like; those of the definition for custom
// resources; name and age for the rest.
std::vector<Column> ColumnsOf(const ResourceType& type);

// How much of the object a row carries (the includeObject parameter).
enum class RowObject { kNone, kMetadata, kObject };

// `objects` in the form of `type`. `metadata` is the list's or the object's.
Json MakeTable(const ResourceType& type, const std::vector<Json>& objects, Json metadata,
               RowObject row_object, Time now);
// {kind: PartialObjectMetadata} of an object.
Json PartialMetadata(const Json& object);

// Cells that several types share: "5m", or "<unknown>" for what is not a time.
Json AgeCell(const Json* timestamp, Time now);

}  // namespace nos::sim
