#include "sim/apiserver/printing/render.h"

#include "base/text.h"
#include "sim/apiserver/encoding/convert.h"

namespace nos::sim {
namespace {

Json TableOf(const ResourceType& type, const View& view, const std::vector<Json>& objects,
             Json metadata, Time now) {
  Json table = MakeTable(type, objects, std::move(metadata), view.row_object, now);
  table.get_object()["apiVersion"] = view.table_version;
  return table;
}

}  // namespace

View ViewOf(const kube::ApiRequest& request) {
  View view;
  const std::string include = request.Query("includeObject");
  if (include == "None") view.row_object = RowObject::kNone;
  if (include == "Object") view.row_object = RowObject::kObject;
  // The first media type wins; its parameters may be in any order.
  const std::string_view first = Split(request.accept, ',')[0];
  for (const std::string_view parameter : Split(first, ';')) {
    const std::string_view text = Trim(parameter);
    if (text == "as=Table") view.form = View::Form::kTable;
    if (text == "as=PartialObjectMetadata" || text == "as=PartialObjectMetadataList") {
      view.form = View::Form::kMetadata;
    }
    if (text == "v=v1beta1") view.table_version = "meta.k8s.io/v1beta1";
  }
  return view;
}

Json RenderObject(const ResourceType& type, const View& view, const Json& stored, Time now) {
  Json object = FromStored(type, stored);
  if (view.form == View::Form::kMetadata) return PartialMetadata(object);
  if (view.form == View::Form::kObject) return object;
  JsonObject metadata{{"resourceVersion", FindString(object, "metadata", "resourceVersion")}};
  std::vector<Json> rows;
  rows.push_back(std::move(object));
  return TableOf(type, view, rows, std::move(metadata), now);
}

Json RenderList(const ResourceType& type, const View& view, const std::vector<ObjectRef>& stored,
                const Json& metadata, Time now) {
  std::vector<Json> objects;
  objects.reserve(stored.size());
  for (const ObjectRef& object : stored) objects.push_back(FromStored(type, *object));
  if (view.form == View::Form::kTable) return TableOf(type, view, objects, metadata, now);
  JsonArray items;
  items.reserve(objects.size());
  const bool partial = view.form == View::Form::kMetadata;
  for (Json& object : objects) {
    // Items of built-in types omit kind and apiVersion, because the list has them. The other
    // members keep their order: a real server writes spec before status.
    if (!partial && type.custom == nullptr) {
      object.get_object().stable_erase("apiVersion");
      object.get_object().stable_erase("kind");
    }
    items.push_back(partial ? PartialMetadata(object) : std::move(object));
  }
  const std::string kind = partial ? "PartialObjectMetadataList" : type.kind + "List";
  const std::string version = partial ? "meta.k8s.io/v1" : type.ApiVersion();
  return {
      {"kind", kind}, {"apiVersion", version}, {"metadata", metadata}, {"items", std::move(items)}};
}

}  // namespace nos::sim
