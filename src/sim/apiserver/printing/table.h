// metav1.Table for `kubectl get`. The server renders the cells; kubectl only aligns them.
#pragma once

#include <functional>

#include "base/clock.h"
#include "sim/apiserver/schemas/types.h"
#include "sim/apiserver/storage/watch_hub.h"

namespace nos::sim {

struct Column {
  std::string name;
  std::string type = "string";
  std::string format;  // "name" marks the column with the object's name
  int priority = 0;    // 1: only with -o wide
  std::function<Json(const Json& object, Time now)> cell;
};

// The columns of the real server for pods, nodes and other common kinds; those of the
// CustomResourceDefinition for custom resources; name and age for all others.
std::vector<Column> ColumnsOf(const ResourceType& type);

// The part of the object that a row contains (the includeObject parameter).
enum class RowObject { kNone, kMetadata, kObject };

// `objects` are in API version `type`. `metadata` is that of the list or of the object.
Json MakeTable(const ResourceType& type, const std::vector<Json>& objects, Json metadata,
               RowObject row_object, Time now);
// {kind: PartialObjectMetadata} of an object.
Json PartialMetadata(const Json& object);

// Cells that several types share: "5m", or "<unknown>" for an invalid time.
Json AgeCell(const Json* timestamp, Time now);

}  // namespace nos::sim
