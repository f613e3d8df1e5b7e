#include "generator.h"

#include <map>

namespace nos::cel {
namespace {

// Forms of each type. {B} stands for an expression of type B, $B for a new variable of type B,
// which the rest of the form may use.
//
//   B bool    I int       U uint      F double    S string    Y bytes     T timestamp  R duration
//   L list of int         M list of string        G list of lists of int  E list of unknown type
//   X map of string to int                        Z map of int to string
//   O optional int        K optional string       D unknown type          N null       A type
//   Q quantity   V version   P IP address   C CIDR   W URL   J named format
using Forms = std::vector<std::string_view>;
const std::map<char, Forms>& Leaves() {
  static const std::map<char, Forms> forms = {
      {'B',
       {"true", "false", "device.allowMultipleAllocations", "{S} == device.driver",
        "device.attributes['dra.example.com'].bool", "has(device.attributes.x)"}},
      {'I',
       {"0", "1", "2", "-1", "7", "60", "9223372036854775807", "-9223372036854775808", "0x1f",
        "-0x10", "4611686018427387904"}},
      {'U', {"0u", "1u", "3u", "18446744073709551615u", "0xFFu"}},
      {'F',
       {"0.0", "1.0", "-1.5", "2.5e3", "1e308", "1e-320", ".5", "9223372036854775808.0",
        "double('NaN')", "double('inf')"}},
      {'S',
       {"''", "'a'", "\"fish\"", "'dra.example.com'", "'h\u00e9llo \u4e16\u754c'", "'1Gi'",
        "'1.2.3'", "'a,b,,c'", "r'\\d+'", "'\\x41\\u00e9\\101'", "'''a\nb'''", "'10.0.0.1'",
        "' x '", "device.driver", "'2024-02-29T12:30:00Z'", "'int'", "'string'", "'(a+)+$'",
        "'%d %s'"}},
      {'Y', {"b''", "b'abc'", "b'\\xff\\377'", "B\"\u00e9\""}},
      {'T',
       {"timestamp('2024-02-29T12:30:45.123456789Z')", "timestamp(0)",
        "timestamp('0001-01-01T00:00:00Z')", "timestamp('9999-12-31T23:59:59.999999999Z')",
        "timestamp('2020-06-01T00:00:00+05:30')", "timestamp(1700000000)"}},
      {'R',
       {"duration('1h')", "duration('90s')", "duration('-1.5h')", "duration('0')",
        "duration('1h2m3.5s')", "duration('9223372036854775807ns')"}},
      {'L', {"[]", "[1]", "[1, 2, 3]", "[3, 1, 2, 1]", "[0, -1, 5,]", "lists.range(4)"}},
      {'M', {"['a']", "['b', 'a', 'b']", "['fish', '']", "'a,b'.split(',')"}},
      {'G', {"[[1], [2, 3]]", "[[]]", "[[1, 2], []]"}},
      {'E',
       {"device.attributes['dra.example.com'].ints", "[dyn(1), dyn('a'), dyn(1.0)]",
        "device.attributes['dra.example.com'].strings", "[]"}},
      {'X', {"{}", "{'a': 1}", "{'a': 1, 'b': 2}", "{'fish': 5}"}},
      {'Z', {"{1: 'a'}", "{2: 'x', 3: 'y'}"}},
      {'O',
       {"optional.none()", "optional.of(1)", "[1, 2][?1]", "[1][?5]", "{'a': 1}.?a",
        "{'a': 1}[?'b']"}},
      {'K', {"optional.none()", "optional.of('a')", "optional.ofNonZeroValue('')"}},
      {'D',
       {"device.attributes['dra.example.com'].int", "device.attributes['dra.example.com'].string",
        "device.attributes['dra.example.com'].version", "device.attributes['other.com'].x",
        "device.attributes['none'].x", "device.attributes['dra.example.com'].bools",
        "device.attributes['dra.example.com']['bool']", "dyn(1)", "dyn('a')", "dyn([1])",
        "dyn(null)", "dyn(b'a')", "dyn(quantity('1'))",
        "device.attributes['dra.example.com'].?int"}},
      {'N', {"null"}},
      {'A',
       {"int", "string", "type", "list", "map", "bool", "null_type", "double", "bytes", "uint",
        "google.protobuf.Duration", "google.protobuf.Timestamp", "optional_type", "net.IP"}},
      {'Q',
       {"quantity('1Gi')", "quantity('500m')", "quantity('0')", "quantity('-1.5Ki')",
        "quantity('1e3')", "quantity('12345678901234567890123')", "quantity('0.5')",
        "quantity('1000')", "quantity('3n')", "device.capacity['dra.example.com'].memory",
        "device.capacity['dra.example.com'].none"}},
      {'V',
       {"semver('1.2.3')", "semver('0.0.1-alpha.1')", "semver('v2.0', true)",
        "semver('1.0.0-rc.1+b')", "device.attributes['dra.example.com'].version"}},
      {'P', {"ip('10.0.0.1')", "ip('::1')", "ip('2001:db8::')", "ip('224.0.0.1')"}},
      {'C', {"cidr('10.0.0.0/8')", "cidr('2001:db8::1/33')", "cidr('10.1.2.3/20')"}},
      {'W',
       {"url('https://user:pw@example.com:80/a%20b?x=1&x=2&y#f')", "url('/path')",
        "url('http://[::1]:8080/')"}},
      {'J',
       {"format.dns1123Label()", "format.uuid()", "format.qualifiedName()", "format.datetime()",
        "format.labelValue()", "format.dns1035LabelPrefix()", "format.byte()", "format.uri()"}},
  };
  return forms;
}

// A table.
const std::map<char, Forms>& Branches() {  // NOLINT(readability-function-size)
  static const std::map<char, Forms> forms = {
      {'B',
       {"{B} && {B}",
        "{B} || {B}",
        "!{B}",
        "({B})",
        "{B} ? {B} : {B}",
        "{I} == {I}",
        "{I} != {I}",
        "{I} < {I}",
        "{I} >= {F}",
        "{U} > {I}",
        "{F} <= {U}",
        "{F} == {F}",
        "{S} == {S}",
        "{S} != {S}",
        "{S} < {S}",
        "{Y} >= {Y}",
        "{T} < {T}",
        "{R} > {R}",
        "{D} == {D}",
        "{D} < {D}",
        "{D} == {I}",
        "{D} != {S}",
        "{L} == {L}",
        "{X} == {X}",
        "{Q} == {Q}",
        "{V} == {V}",
        "{V} != {V}",
        "{P} == {P}",
        "{C} == {C}",
        "{W} == {W}",
        "{O} == {O}",
        "{A} == {A}",
        "type({D}) == {A}",
        "{I} in {L}",
        "{S} in {M}",
        "{S} in {X}",
        "{D} in {E}",
        "{S} in device.attributes",
        "{D} in {L}",
        "{D} in ['a', 'b']",
        "{F} in [1.0, 2.0]",
        "{I} in {Z}",
        "{S}.contains({S})",
        "{S}.startsWith({S})",
        "{S}.endsWith({S})",
        "{S}.matches({S})",
        "matches({S}, {S})",
        "{D}.startsWith({S})",
        "{L}.all($I, {B})",
        "{L}.exists($I, {B})",
        "{L}.exists_one($I, {B})",
        "{M}.all($S, {B})",
        "{M}.exists($S, {B})",
        "{X}.all($S, {B})",
        "{L}.all($I, $I, {B})",
        "{X}.exists($S, $I, {B})",
        "{M}.existsOne($I, $S, {B})",
        "{E}.exists($D, {B})",
        "{D}.all($D, {B})",
        "cel.bind($I, {I}, {B})",
        "cel.bind($D, {D}, {B})",
        "cel.bind($X, {X}, {B})",
        "cel.bind($L, {L}, {B})",
        "has({X}.a)",
        "has({D}.a)",
        "has(device.attributes['dra.example.com'].int)",
        "has(device.capacity.x.y)",
        "{O}.hasValue()",
        "{O}.orValue({I}) == {I}",
        "{Q}.isGreaterThan({Q})",
        "{Q}.isLessThan({Q})",
        "{Q}.compareTo({Q}) == {I}",
        "{Q}.isInteger()",
        "sign({Q}) == {I}",
        "isQuantity({S})",
        "{V}.isGreaterThan({V})",
        "{V}.compareTo({V}) < {I}",
        "isSemver({S})",
        "isSemver({S}, {B})",
        "{L}.isSorted()",
        "{M}.isSorted()",
        "{D}.includes({D})",
        "{L}.includes({I})",
        "sets.contains({L}, {L})",
        "sets.intersects({M}, {M})",
        "sets.equivalent({L}, {L})",
        "isIP({S})",
        "isCIDR({S})",
        "isURL({S})",
        "ip.isCanonical({S})",
        "{P}.isLoopback()",
        "{P}.isGlobalUnicast()",
        "{C}.containsIP({S})",
        "{C}.containsIP({P})",
        "{C}.containsCIDR({C})",
        "{C}.containsCIDR({S})",
        "{J}.validate({S}).hasValue()",
        "format.named({S}).hasValue()",
        "bool({S})",
        "bool({B})",
        "{N} == {D}",
        "{O}.or({O}) == {O}",
        "{E} == {E}",
        "{D} ? {B} : {B}",
        "device.attributes[{S}].{ID}",
        "device.attributes[{S}][{S}]",
        "{D}",
        "{L}.distinct() == {L}",
        "device.attributes.exists_one($S, {B})",
        "device.attributes[{S}].all($S, $D, {B})",
        "({B} ? device.attributes : device.attributes)['dra.example.com'].bool",
        "[{B}, {B}][{I}]",
        "{'a': {B}}.a",
        "{'a': {B}}[{S}]",
        "{D}[{D}]",
        "{D}.a",
        "{K} == {K}"}},
      {'I',
       {"{I} + {I}",
        "{I} - {I}",
        "{I} * {I}",
        "{I} / {I}",
        "{I} % {I}",
        "-({I})",
        "--{I}",
        "{B} ? {I} : {I}",
        "size({S})",
        "{S}.size()",
        "size({L})",
        "{X}.size()",
        "{Y}.size()",
        "{L}[{I}]",
        "{X}[{S}]",
        "{X}.a",
        "int({S})",
        "int({F})",
        "int({U})",
        "int({T})",
        "int({R})",
        "{S}.indexOf({S})",
        "{S}.lastIndexOf({S})",
        "{S}.indexOf({S}, {I})",
        "{L}.indexOf({I})",
        "{L}.lastIndexOf({I})",
        "{L}.sum()",
        "{L}.max()",
        "{L}.min()",
        "{O}.value()",
        "{O}.orValue({I})",
        "{T}.getFullYear()",
        "{T}.getMonth()",
        "{T}.getDayOfYear()",
        "{T}.getDate()",
        "{T}.getDayOfWeek()",
        "{T}.getHours('+02:30')",
        "{T}.getMinutes({S})",
        "{T}.getMilliseconds()",
        "{R}.getHours()",
        "{R}.getMinutes()",
        "{R}.getSeconds()",
        "{R}.getMilliseconds()",
        "{Q}.asInteger()",
        "{V}.major()",
        "{V}.patch()",
        "{P}.family()",
        "{C}.prefixLength()",
        "cel.bind($I, {I}, {I})",
        "{O}.optMap($I, {I}).orValue({I})",
        "{L}.first().value()",
        "{G}.size()",
        "{'a': {X}}.a.b",
        "{L}.map($I, {I})[0]"}},
      {'U',
       {"{U} + {U}", "{U} - {U}", "{U} * {U}", "{U} / {U}", "{U} % {U}", "uint({I})", "uint({S})",
        "uint({F})", "[{U}, {U}].sum()"}},
      {'F',
       {"{F} + {F}", "{F} - {F}", "{F} * {F}", "{F} / {F}", "-({F})", "double({S})", "double({I})",
        "double({U})", "{Q}.asApproximateFloat()", "[{F}, {F}].max()"}},
      {'S',
       {"{S} + {S}",
        "{B} ? {S} : {S}",
        "string({I})",
        "string({F})",
        "string({B})",
        "string({Y})",
        "string({T})",
        "string({R})",
        "string({U})",
        "string({P})",
        "string({C})",
        "{S}.lowerAscii()",
        "{S}.upperAscii()",
        "{S}.trim()",
        "{S}.replace({S}, {S})",
        "{S}.replace({S}, {S}, {I})",
        "{S}.substring({I})",
        "{S}.substring({I}, {I})",
        "{S}.charAt({I})",
        "{M}.join()",
        "{M}.join({S})",
        "{S}.find({S})",
        "{M}[{I}]",
        "{Z}[{I}]",
        "strings.quote({S})",
        "{K}.orValue({S})",
        "{W}.getHost()",
        "{W}.getHostname()",
        "{W}.getPort()",
        "{W}.getScheme()",
        "{W}.getEscapedPath()",
        "'%d-%s'.format([{I}, {S}])",
        "'%s %s'.format([{D}, {L}])",
        "'%x %X'.format([{I}, {S}])",
        "'%b'.format([{B}])",
        "{S}.format([{D}])",
        "'%s'.format([{X}])",
        "cel.bind($S, {S}, {S} + {S})",
        "{M}.max()",
        "{M}.map($S, {S})[0]"}},
      {'Y', {"{Y} + {Y}", "bytes({S})"}},
      {'T', {"{T} + {R}", "{R} + {T}", "{T} - {R}", "timestamp({S})", "timestamp({I})"}},
      {'R', {"{R} + {R}", "{R} - {R}", "{T} - {T}", "duration({S})", "[{R}, {R}].min()"}},
      {'L',
       {"{L} + {L}",
        "[{I}, {I}]",
        "{L}.map($I, {I})",
        "{L}.filter($I, {B})",
        "{L}.map($I, {B}, {I})",
        "{L}.sort()",
        "{L}.reverse()",
        "{L}.distinct()",
        "{L}.slice({I}, {I})",
        "{G}.flatten()",
        "{G}[{I}]",
        "lists.range({I})",
        "{L}.sortBy($I, {I})",
        "{M}.map($S, {I})",
        "{L}.transformList($I, $I, {I})",
        "{X}.transformList($S, $I, {B}, {I})",
        "[?{O}, {I}]",
        "[{O}, {O}].unwrapOpt()",
        "optional.unwrap([{O}])",
        "{B} ? {L} : {L}",
        "cel.bind($L, {L}, {L})",
        "[1, 2, 3].map($I, [{I}, {I}].sum())"}},
      {'M',
       {"{M} + {M}", "[{S}, {S}]", "{S}.split({S})", "{S}.split({S}, {I})", "{S}.findAll({S})",
        "{S}.findAll({S}, {I})", "{M}.sort()", "{M}.map($S, {S})", "{M}.filter($S, {B})",
        "{X}.map($S, {S})", "{M}.sortBy($S, {I})", "{W}.getQuery()[{S}]"}},
      {'G', {"[{L}, {L}]", "{L}.map($I, {L})", "{G} + {G}"}},
      {'E', {"[dyn({I}), dyn({S})]", "{E} + {E}", "{D}", "[[{I}]].flatten({I})"}},
      {'X',
       {"{{S}: {I}}", "{{S}: {I}, {S}: {I}}", "{?'a': {O}}", "{X}.transformMap($S, $I, {I})",
        "{X}.transformMap($S, $I, {B}, {I})", "{L}.transformMapEntry($I, $I, {string({I}): {I}})",
        "{B} ? {X} : {X}"}},
      {'Z', {"{{I}: {S}}", "{M}.transformMap($I, $S, {S})", "{Z}.transformMap($I, $S, {S})"}},
      {'O',
       {"optional.of({I})", "{L}[?{I}]", "{X}[?{S}]", "{X}.?a", "{O}.or({O})",
        "{O}.optMap($I, {I})", "{O}.optFlatMap($I, {O})", "optional.ofNonZeroValue({I})",
        "{L}.last()", "{B} ? {O} : {O}"}},
      {'K', {"optional.of({S})", "{M}[?{I}]", "{O}.optMap($I, {S})", "{K}.or({K})"}},
      {'D',
       {"dyn({I})", "dyn({S})", "dyn({L})", "dyn({X})", "dyn({F})", "dyn({B})", "dyn({O})",
        "device.attributes[{S}].{ID}", "{E}[{I}]", "{B} ? {D} : {D}", "{D}[{I}]", "{D} + {D}",
        "dyn({R})", "dyn({Q})", "{D}.size()"}},
      {'N', {"null"}},
      {'A', {"type({I})", "type({S})", "type({D})", "type({A})", "type({Q})", "type({O})"}},
      {'Q',
       {"quantity({S})", "{Q}.add({Q})", "{Q}.sub({Q})", "{Q}.add({I})", "{Q}.sub({I})",
        "device.capacity[{S}].memory", "{B} ? {Q} : {Q}"}},
      {'V', {"semver({S})", "semver({S}, {B})"}},
      {'P', {"ip({S})", "{C}.ip()"}},
      {'C', {"cidr({S})", "{C}.masked()"}},
      {'W', {"url({S})"}},
      {'J', {"format.named({S}).value()"}},
  };
  return forms;
}

constexpr std::string_view kIdentifiers[] = {"int", "bool", "string", "version",
                                             "x",   "ints", "none"};
constexpr size_t kMaxLength = 2000;

}  // namespace

std::string Generator::Next() {
  scope_.clear();
  next_variable_ = 0;
  length_ = 0;
  std::string text = Make(Chance(97) ? 'B' : 'D', static_cast<int>(Below(5)));
  return Chance(4) ? Damage(std::move(text)) : text;
}

std::string Generator::Make(char type, int depth) {
  if (Chance(2)) {  // of another type
    constexpr std::string_view kTypes = "BIUFSYTRLMGEXZOKDNAQVPCWJ";
    type = kTypes[Below(kTypes.size())];
  }
  if (!scope_.empty() && Chance(35)) {
    const Variable& variable = scope_[Below(scope_.size())];
    if (variable.type == type || Chance(3)) return variable.name;
  }
  const bool leaf = depth <= 0 || length_ > kMaxLength || Chance(15);
  const Forms& forms = leaf ? Leaves().at(type) : Branches().at(type);
  return Fill(forms[Below(forms.size())], depth - 1);
}

std::string Generator::Fill(std::string_view form, int depth) {
  const size_t outer = scope_.size();
  std::string text;
  std::vector<Variable> waiting;  // in scope behind the next comma
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] == '{' && i + 2 < form.size() && form[i + 2] == '}') {
      text += Make(form[i + 1], depth);
      i += 2;
    } else if (form.substr(i).starts_with("{ID}")) {
      text += kIdentifiers[Below(std::size(kIdentifiers))];
      i += 3;
    } else if (form[i] == '$') {
      waiting.push_back({form[i + 1], "v" + std::to_string(next_variable_++)});
      text += waiting.back().name;
      ++i;
      if (form.substr(0, 9) != "cel.bind(") {
        scope_.push_back(waiting.back());
        waiting.pop_back();
      }
    } else {
      // The value of cel.bind does not see its variable, but the result does.
      text += form[i];
      if (form[i] == ',' && text.find(',') != text.size() - 1) {
        scope_.insert(scope_.end(), waiting.begin(), waiting.end());
        waiting.clear();
      }
    }
  }
  scope_.resize(outer);
  length_ += text.size() / 4;
  return text;
}

std::string Generator::Damage(std::string text) {
  if (text.empty()) return text;
  constexpr std::string_view kParts[] = {
      "(", ")",  "[",  "]",   "{",  "}",  ".",  ",",  "?", ":",  "'",  "\"", "&&", "||", "!",
      "-", "in", "\\", "`a`", "0x", "1u", "b'", "//", " ", "\n", "as", "==", "e5", "."};
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return text;  // stay within UTF-8
  }
  const size_t at = Below(text.size());
  switch (Below(3)) {
    case 0:
      text.erase(at, 1 + Below(3));
      break;
    case 1:
      text.insert(at, kParts[Below(std::size(kParts))]);
      break;
    default:
      std::swap(text[at], text[Below(text.size())]);
      break;
  }
  return text;
}

}  // namespace nos::cel
