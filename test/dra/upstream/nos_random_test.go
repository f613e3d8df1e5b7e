// Random problems for both allocators: equal feasibility, and valid results.
package experimental

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/draoptionalnodeoperations"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/klog/v2"
)

func pointer[T any](value T) *T { return &value }

type classList []*resourceapi.DeviceClass

func (l classList) List() ([]*resourceapi.DeviceClass, error) { return l, nil }
func (l classList) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

// drawing makes one random problem.
type drawing struct {
	*rand.Rand
	features Features
	faulty   bool // expressions may fail
	large    bool
}

func (d *drawing) chance(percent int) bool { return d.Intn(100) < percent }
func (d *drawing) pick(texts ...string) string {
	return texts[d.Intn(len(texts))]
}

func (d *drawing) drawFeatures() {
	on := func(percent int) bool { return d.chance(percent) }
	d.features = Features{
		AdminAccess: on(80), PrioritizedList: true, PartitionableDevices: on(80), ConsumableCapacity: on(70),
		DeviceTaints: on(70), DeviceBindingAndStatus: on(70), ListTypeAttributes: on(40), DerivedAttributes: on(30),
		CompatibilityGroups: on(40), OptionalNodeOperations: on(50), FractionalCapacityRange: on(50),
	}
}

func (d *drawing) attributes() map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
	attributes["model"] = resourceapi.DeviceAttribute{StringValue: pointer(d.pick("a", "b"))}
	if d.chance(80) {
		attributes["numa"] = resourceapi.DeviceAttribute{IntValue: pointer(int64(d.Intn(3)))}
	}
	if d.chance(30) {
		attributes["version"] = resourceapi.DeviceAttribute{VersionValue: pointer(d.pick("1.2.0", "1.2.0-rc.1", "1.10.0+b.7"))}
	}
	if d.chance(50) {
		attributes["resource.kubernetes.io/pcieRoot"] = resourceapi.DeviceAttribute{StringValue: pointer(d.pick("p0", "p1", "p2"))}
	}
	if d.features.ListTypeAttributes && d.chance(50) {
		values := []string{d.pick("x", "y"), d.pick("z", "w")}
		attributes["links"] = resourceapi.DeviceAttribute{StringValues: values}
	} else if d.chance(40) {
		attributes["links"] = resourceapi.DeviceAttribute{StringValue: pointer(d.pick("x", "y", "z"))}
	}
	return attributes
}

func (d *drawing) policy() *resourceapi.CapacityRequestPolicy {
	amount := func(text string) *resource.Quantity { return pointer(resource.MustParse(text)) }
	switch d.Intn(4) {
	case 0:
		return &resourceapi.CapacityRequestPolicy{Default: amount("2"),
			ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: amount("2"), Step: amount("2"), Max: amount("6")}}
	case 1:
		return &resourceapi.CapacityRequestPolicy{Default: amount("1"),
			ValidValues: []resource.Quantity{*amount("1"), *amount("3"), *amount("5")}}
	case 2:
		return &resourceapi.CapacityRequestPolicy{Default: amount("200m"),
			ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: amount("200m"), Step: amount("100m"), Max: amount("4")}}
	}
	return nil
}

var counterNames = []string{"memory", "slot-0", "slot-1"}

func (d *drawing) device(name string, counterSets []string) resourceapi.Device {
	device := resourceapi.Device{Name: name, Attributes: d.attributes()}
	if d.features.ConsumableCapacity && d.chance(40) {
		device.AllowMultipleAllocations = pointer(true)
	}
	if d.chance(50) {
		capacity := resourceapi.DeviceCapacity{Value: *resource.NewQuantity(int64(2+d.Intn(7)), resource.DecimalSI)}
		if device.AllowMultipleAllocations != nil {
			capacity.RequestPolicy = d.policy()
		}
		device.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": capacity}
	}
	if len(counterSets) > 0 && d.chance(80) {
		for _, set := range counterSets {
			if len(device.ConsumesCounters) == 2 || !d.chance(60) {
				continue
			}
			consumption := resourceapi.DeviceCounterConsumption{CounterSet: set, Counters: map[string]resourceapi.Counter{}}
			for _, counter := range counterNames {
				if d.chance(60) {
					consumption.Counters[counter] = resourceapi.Counter{Value: *resource.NewQuantity(int64(1+d.Intn(3)), resource.DecimalSI)}
				}
			}
			if d.features.CompatibilityGroups && d.chance(50) {
				consumption.CompatibilityGroups = []string{d.pick("mig", "mps")}
			}
			device.ConsumesCounters = append(device.ConsumesCounters, consumption)
		}
	}
	if d.chance(15) {
		device.Taints = []resourceapi.DeviceTaint{{Key: d.pick("k", "l"), Value: "v",
			Effect: resourceapi.DeviceTaintEffect(d.pick("NoSchedule", "NoExecute", "None"))}}
	}
	if d.chance(10) {
		device.BindingConditions, device.BindingFailureConditions = []string{"Cut"}, []string{"CutFailed"}
		device.BindsToNode = pointer(true)
	}
	return device
}

func (d *drawing) selectNodes(slice *resourceapi.ResourceSliceSpec) {
	switch d.Intn(10) {
	case 0:
		slice.AllNodes = pointer(true)
	case 1:
		slice.NodeSelector = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{d.pick("z1", "z1", "z2")}}}}}}
	case 2:
		slice.PerDeviceNodeSelection = pointer(true)
		for i := range slice.Devices {
			slice.Devices[i].NodeName = pointer(d.pick("n1", "n1", "n2"))
		}
	default:
		slice.NodeName = pointer(d.pick("n1", "n1", "n1", "n1", "n1", "n2"))
	}
}

func (d *drawing) pool(number int) []*resourceapi.ResourceSlice {
	most := 5
	if d.large {
		most = 12
	}
	driver := d.pick("d1.example.com", "d2.example.com")
	count := 1 + d.Intn(2)
	var counterSets []string
	if d.features.PartitionableDevices && d.chance(60) {
		counterSets = []string{"c0", "c1"}
	}
	var slices []*resourceapi.ResourceSlice
	add := func(spec resourceapi.ResourceSliceSpec) {
		spec.Driver = driver
		spec.Pool = resourceapi.ResourcePool{Name: fmt.Sprintf("pool-%d", number), Generation: 1}
		slices = append(slices, &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s-%d-%d", number, len(slices))}, Spec: spec})
	}
	for i := 0; i < count; i++ {
		var spec resourceapi.ResourceSliceSpec
		for n := d.Intn(most); n >= 0; n-- {
			name := fmt.Sprintf("dev-%d-%d", i, n)
			if d.chance(1) {
				name = "dev-0-0" // a duplicate
			}
			spec.Devices = append(spec.Devices, d.device(name, counterSets))
		}
		if d.features.OptionalNodeOperations && d.chance(10) {
			spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
		}
		d.selectNodes(&spec)
		add(spec)
	}
	if counterSets != nil && !d.chance(2) {
		var spec resourceapi.ResourceSliceSpec
		for _, set := range counterSets {
			counters := map[string]resourceapi.Counter{}
			for _, counter := range counterNames {
				counters[counter] = resourceapi.Counter{Value: *resource.NewQuantity(int64(2+d.Intn(4)), resource.DecimalSI)}
			}
			spec.SharedCounters = append(spec.SharedCounters, resourceapi.CounterSet{Name: set, Counters: counters})
		}
		d.selectNodes(&spec)
		add(spec)
	}
	expected := int64(len(slices))
	if d.chance(2) {
		expected++
	}
	for _, slice := range slices {
		slice.Spec.Pool.ResourceSliceCount = expected
		if d.chance(1) {
			slice.Spec.Pool.Generation = 2
		}
	}
	return slices
}

func (d *drawing) selectors() []resourceapi.DeviceSelector {
	expressions := []string{
		`device.driver == "d1.example.com"`,
		`device.attributes["d1.example.com"].model == "a"`,
		`"numa" in device.attributes["d2.example.com"] && device.attributes["d2.example.com"].numa > 0`,
		`device.attributes["d1.example.com"].?model.orValue("") == "b"`,
		`"model" in device.attributes["d1.example.com"] || "model" in device.attributes["d2.example.com"]`,
		`device.capacity[device.driver].?memory.orValue(quantity("5")).compareTo(quantity("4500m")) > 0`,
		`device.attributes[device.driver].?version.orValue(semver("1.0.0")).isLessThan(semver("1.2.0"))`,
		`device.attributes[device.driver].?links.orValue("x") == "x"`,
		`!device.allowMultipleAllocations`,
	}
	if d.faulty {
		expressions = append(expressions, `device.attributes["d1.example.com"].numa == 1`, `nonsense == 1`)
	} else {
		expressions[1] = `device.attributes["d1.example.com"].?model.orValue("") == "a"`
	}
	var selectors []resourceapi.DeviceSelector
	for d.chance(30) {
		selectors = append(selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expressions[d.Intn(len(expressions))]}})
	}
	return selectors
}

func (d *drawing) exactly() *resourceapi.ExactDeviceRequest {
	request := &resourceapi.ExactDeviceRequest{DeviceClassName: d.pick("any", "one", "two"), Selectors: d.selectors()}
	if d.chance(12) {
		request.AllocationMode = resourceapi.DeviceAllocationModeAll
	} else {
		most := 3
		if d.large {
			most = 6
		}
		request.AllocationMode, request.Count = resourceapi.DeviceAllocationModeExactCount, int64(1+d.Intn(most))
	}
	if d.chance(25) {
		request.Tolerations = []resourceapi.DeviceToleration{{Key: d.pick("k", "l", ""), Operator: resourceapi.DeviceTolerationOpExists}}
	}
	if d.features.ConsumableCapacity && d.chance(25) {
		request.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{
			"memory": resource.MustParse(d.pick("1", "2", "3", "250m", "1500m"))}}
	}
	if d.features.DerivedAttributes && d.chance(20) {
		expressions := []string{
			`device.attributes[device.driver].?model.orValue("none") + "!"`,
			`device.attributes[device.driver].?numa.orValue(4) / 2`,
			`device.attributes[device.driver].?version.orValue(semver("1.0.0"))`,
			`[device.attributes[device.driver].model, "c"]`,
			`device.attributes[device.driver].?links.orValue("x")`,
			`device.driver == "d1.example.com"`,
		}
		if d.faulty {
			expressions = append(expressions, `device.attributes[device.driver].numa`, `device.attributes`, `[dyn(1), dyn("a")]`)
		}
		request.DerivedAttributes = []resourceapi.DeviceDerivedAttribute{{Name: "derived.example.com/half",
			Expression: expressions[d.Intn(len(expressions))]}}
	}
	return request
}

func (d *drawing) constraint() resourceapi.DeviceConstraint {
	name := pointer(resourceapi.FullyQualifiedName(d.pick("d1.example.com/model", "d1.example.com/numa", "d2.example.com/numa",
		"resource.kubernetes.io/pcieRoot", "d1.example.com/links", "derived.example.com/half")))
	constraint := resourceapi.DeviceConstraint{MatchAttribute: name}
	if d.chance(40) {
		constraint = resourceapi.DeviceConstraint{DistinctAttribute: name}
	}
	if d.chance(50) {
		constraint.Requests = []string{d.pick("r0", "r1", "r0/a0", "r1/a1")}
	}
	return constraint
}

func (d *drawing) claim(number int) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("claim-%d", number), Namespace: "ns"}}
	devices := &claim.Spec.Devices
	for i := d.Intn(3); i >= 0; i-- {
		request := resourceapi.DeviceRequest{Name: fmt.Sprintf("r%d", len(devices.Requests))}
		if d.chance(75) {
			request.Exactly = d.exactly()
			if d.features.AdminAccess && d.chance(10) {
				request.Exactly.AdminAccess = pointer(true)
			}
		} else {
			for n := d.Intn(3); n >= 0; n-- {
				drawn := d.exactly()
				request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{
					Name: fmt.Sprintf("a%d", len(request.FirstAvailable)), DeviceClassName: drawn.DeviceClassName, Selectors: drawn.Selectors,
					AllocationMode: drawn.AllocationMode, Count: drawn.Count, Tolerations: drawn.Tolerations, Capacity: drawn.Capacity,
					DerivedAttributes: drawn.DerivedAttributes})
			}
		}
		devices.Requests = append(devices.Requests, request)
	}
	for d.chance(25) {
		devices.Constraints = append(devices.Constraints, d.constraint())
	}
	if d.chance(20) {
		devices.Config = []resourceapi.DeviceClaimConfiguration{{Requests: []string{d.pick("r0", "r1", "r0/a0")},
			DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
				Driver: "d1.example.com", Parameters: runtime.RawExtension{Raw: []byte(`{"a":1}`)}}}}}
	}
	return claim
}

func (d *drawing) classes() classList {
	class := func(name, expression string) *resourceapi.DeviceClass {
		class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if expression != "" {
			class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
		}
		if d.chance(30) {
			class.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
				Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "d1.example.com", Parameters: runtime.RawExtension{Raw: []byte(`{"b":2}`)}}}}}
		}
		return class
	}
	return classList{class("any", ""), class("one", `device.driver == "d1.example.com"`), class("two", `device.driver == "d2.example.com"`)}
}

// use marks random devices as allocated, as long as their counters allow it.
func (d *drawing) use(all []*resourceapi.ResourceSlice) AllocatedState {
	state := AllocatedState{AllocatedDevices: sets.New[DeviceID](), AllocatedSharedDeviceIDs: sets.New[SharedDeviceID](),
		AggregatedCapacity: NewConsumedCapacityCollection()}
	left := countersOf(all)
	forEachDevice(all, func(slice *resourceapi.ResourceSlice, device *resourceapi.Device) {
		id := MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, device.Name)
		if !d.chance(20) || state.AllocatedDevices.Has(id) || !left.take(slice, device) {
			return
		}
		if device.AllowMultipleAllocations == nil {
			state.AllocatedDevices.Insert(id)
			return
		}
		state.AllocatedSharedDeviceIDs.Insert(internalShare(id))
		if capacity, found := device.Capacity["memory"]; found && d.chance(70) {
			half := *resource.NewQuantity(capacity.Value.Value()/2, resource.DecimalSI)
			state.AggregatedCapacity.Insert(NewDeviceConsumedCapacity(id, map[resourceapi.QualifiedName]resource.Quantity{"memory": half}))
		}
	})
	return state
}

func internalShare(id DeviceID) SharedDeviceID {
	return SharedDeviceID{Driver: id.Driver, Pool: id.Pool, Device: id.Device, ShareID: id.Device}
}

// counters is what is left, by pool, counter set and counter.
type counters map[string]*resource.Quantity

func countersOf(all []*resourceapi.ResourceSlice) counters {
	left := counters{}
	for _, slice := range all {
		for _, set := range slice.Spec.SharedCounters {
			for name, counter := range set.Counters {
				left[slice.Spec.Driver+"/"+slice.Spec.Pool.Name+"/"+set.Name+"/"+name] = pointer(counter.Value.DeepCopy())
			}
		}
	}
	return left
}

// take consumes the counters of a device, or nothing if they do not suffice.
func (c counters) take(slice *resourceapi.ResourceSlice, device *resourceapi.Device) bool {
	visit := func(sign int) (enough bool) {
		enough = true
		for _, consumption := range device.ConsumesCounters {
			for name, need := range consumption.Counters {
				left := c[slice.Spec.Driver+"/"+slice.Spec.Pool.Name+"/"+consumption.CounterSet+"/"+name]
				if left == nil {
					enough = false
				} else if sign < 0 {
					left.Sub(need.Value)
					enough = enough && left.Sign() >= 0
				} else {
					left.Add(need.Value)
				}
			}
		}
		return enough
	}
	if visit(-1) {
		return true
	}
	visit(+1)
	return false
}

// hasAdmin reports requests for admin access; nos does not charge counters for them.
func hasAdmin(claims []*resourceapi.ResourceClaim) bool {
	for _, claim := range claims {
		for _, request := range claim.Spec.Devices.Requests {
			if request.Exactly != nil && request.Exactly.AdminAccess != nil {
				return true
			}
		}
	}
	return false
}

type randomCounts struct {
	run, fit, identical, refused, gaveUp, explained, steps int64
}

// compareOne draws a problem for the seed, and returns how the allocators differ, "" if they agree.
func compareOne(t *testing.T, seed int64, counts *randomCounts) string {
	d := &drawing{Rand: rand.New(rand.NewSource(seed))}
	d.faulty, d.large = d.chance(10), d.chance(15)
	d.drawFeatures()
	var all []*resourceapi.ResourceSlice
	for i := d.Intn(3); i >= 0; i-- {
		all = append(all, d.pool(i)...)
	}
	classes := d.classes()
	var claims []*resourceapi.ResourceClaim
	for i := d.Intn(2); i >= 0; i-- {
		claims = append(claims, d.claim(i))
	}
	state := d.use(all)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "z1"}}}
	if d.chance(70) {
		node.Status.DeclaredFeatures = []string{draoptionalnodeoperations.DRAOptionalNodeOperationsFeatureGate}
	}

	ctx, cancel := context.WithTimeout(klog.NewContext(context.Background(), klog.Logger{}), time.Second)
	defer cancel()
	allocator, err := NewAllocator(ctx, d.features, state, classes, all, cel.NewCache(10, cel.Features{
		EnableConsumableCapacity: d.features.ConsumableCapacity, EnableListTypeAttributes: d.features.ListTypeAttributes}))
	if err != nil {
		t.Fatal(err)
	}
	wanted, wantedErr := allocator.Allocate(ctx, node, claims)
	nos, err := startNos()
	if err != nil {
		t.Fatal(err)
	}
	problem := makeProblem(d.features, state, classes, all, node, claims)
	answer, err := nos.ask(problem)
	if err != nil {
		t.Fatal(err)
	}
	describe := func(text string) string {
		line, _ := json.Marshal(problem)
		if file := os.Getenv("NOS_DRA_PROBLEM"); file != "" {
			_ = os.WriteFile(file, append(line, '\n'), 0o600)
		}
		return fmt.Sprintf("seed %d: %s; nos: %s %s %s; Kubernetes: %d results, error %v", seed, text, answer.Kind, answer.Fault, answer.Message, len(wanted), wantedErr)
	}
	counts.run++
	counts.steps += answer.Steps
	reversed := *problem
	reversed.Ranking = "reverse"
	ranked, err := nos.ask(&reversed)
	if err != nil {
		t.Fatal(err)
	}
	if !d.faulty && infeasible(ranked) != infeasible(answer) && ranked.Kind != "StepsExhausted" {
		return describe("another order of devices gives " + ranked.Kind)
	}
	for _, candidate := range []*nosAnswer{answer, ranked} {
		if candidate.Kind != "Allocated" {
			continue
		}
		if fault := checkResult(problem, state, candidate.Allocations); fault != "" {
			return describe("invalid result: " + fault)
		}
	}
	switch {
	case errors.Is(wantedErr, context.DeadlineExceeded):
		counts.gaveUp++
		return ""
	case wantedErr != nil:
		if answer.Kind == "Refused" && sameFault(answer, wantedErr) {
			counts.refused++
			return ""
		}
		// kube-scheduler reports a constraint that excludes one of "all" devices at once; nos tries
		// other choices for the requests before, and none if a request lacks devices in any case.
		if sameFault(&nosAnswer{Fault: "ConstraintExcludesAll"}, wantedErr) {
			counts.explained++
			return ""
		}
		if sameFault(&nosAnswer{Fault: "ExpressionFailed"}, wantedErr) && hasForeignDevices(all) {
			counts.explained++
			return ""
		}
		return describe("errors differ")
	case wanted != nil:
		if answer.Kind != "Allocated" {
			return describe("only Kubernetes allocates")
		}
		counts.fit++
		if equality.Semantic.DeepEqual(withoutShares(wanted), withoutShares(answer.Allocations)) {
			counts.identical++
		} else if !hasAdmin(claims) {
			return describe("both allocate, but not the same")
		}
		return ""
	case answer.Kind == "Allocated":
		if hasAdmin(claims) {
			counts.explained++
			return ""
		}
		return describe("only nos allocates")
	case answer.Kind != "DoesNotFit":
		if hasAdmin(claims) {
			counts.explained++
			return ""
		}
		return describe("only nos refuses")
	}
	return ""
}

// infeasible: the order of devices decides only which of two answers says so.
func infeasible(answer *nosAnswer) bool {
	return answer.Kind == "DoesNotFit" || answer.Fault == "ConstraintExcludesAll"
}

// hasForeignDevices reports devices that select their nodes one by one. nos does not evaluate selectors
// for those of other nodes, so their faults do not end the allocation on this one.
func hasForeignDevices(all []*resourceapi.ResourceSlice) (found bool) {
	forEachDevice(all, func(slice *resourceapi.ResourceSlice, device *resourceapi.Device) {
		found = found || (slice.Spec.PerDeviceNodeSelection != nil && *device.NodeName != "n1")
	})
	return found
}

func number(name string, otherwise int64) int64 {
	if value, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {
		return value
	}
	return otherwise
}

// TestNosRandom compares NOS_DRA_SEEDS problems from the seed NOS_DRA_FIRST_SEED on.
func TestNosRandom(t *testing.T) {
	first, count := number("NOS_DRA_FIRST_SEED", 1), number("NOS_DRA_SEEDS", 1000)
	var counts randomCounts
	differing := 0
	for seed := first; seed < first+count; seed++ {
		if difference := compareOne(t, seed, &counts); difference != "" {
			differing++
			t.Error(difference)
			if differing == 20 {
				break
			}
		}
	}
	fmt.Printf("nos random: %d problems, %d fit (%d of them with identical results), %d refused by both, %d where "+
		"kube-scheduler's allocator ran out of time, %d explained, %d differing; %d devices tried\n",
		counts.run, counts.fit, counts.identical, counts.refused, counts.gaveUp, counts.explained, differing, counts.steps)
}
