// The form that the client requested: objects, rows of a Table, or metadata only.
#pragma once

#include "sim/apiserver/printing/table.h"

namespace nos::sim {

struct View {
  enum class Form { kObject, kTable, kMetadata };
  Form form = Form::kObject;
  std::string table_version = "meta.k8s.io/v1";
  RowObject row_object = RowObject::kMetadata;
};
View ViewOf(const kube::ApiRequest& request);

// Renders an object in API version `type`, converted from its stored form.
Json RenderObject(const ResourceType& type, const View& view, const Json& stored, Time now);
Json RenderList(const ResourceType& type, const View& view, const std::vector<ObjectRef>& stored,
                const Json& metadata, Time now);

}  // namespace nos::sim
