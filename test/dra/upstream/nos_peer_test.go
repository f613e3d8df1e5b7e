// Puts nos in the place of the allocator that Kubernetes' tests examine. The script copies this file
// into a copy of the module, beside that allocator, because both packages are internal.
package experimental

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/draoptionalnodeoperations"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured/internal"
	"k8s.io/dynamic-resource-allocation/structured/internal/allocatortesting"
)

// nosProcess is the helper program of nos, which answers one line for each line.
type nosProcess struct {
	mutex sync.Mutex
	in    io.Writer
	out   *bufio.Reader
}

var startNos = sync.OnceValues(func() (*nosProcess, error) {
	command := exec.Command(os.Getenv("NOS_DRA_ALLOCATOR"))
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &nosProcess{in: in, out: bufio.NewReaderSize(out, 1<<20)}, command.Start()
})

type nosProblem struct {
	Features               Features                                    `json:"features"`
	Node                   *v1.Node                                    `json:"node"`
	OptionalNodeOperations bool                                        `json:"optionalNodeOperations"`
	Slices                 []*resourceapi.ResourceSlice                `json:"slices"`
	Classes                []*resourceapi.DeviceClass                  `json:"classes"`
	Claims                 []*resourceapi.ResourceClaim                `json:"claims"`
	Allocated              []resourceapi.DeviceRequestAllocationResult `json:"allocated"`
	MaxSteps               int64                                       `json:"maxSteps,omitempty"`
	Ranking                string                                      `json:"ranking,omitempty"`
}

type nosAnswer struct {
	Kind        string                         `json:"kind"`
	Fault       string                         `json:"fault"`
	Message     string                         `json:"message"`
	NodeOnly    bool                           `json:"nodeOnly"`
	Steps       int64                          `json:"steps"`
	Allocations []resourceapi.AllocationResult `json:"allocations"`
}

func (p *nosProcess) ask(problem *nosProblem) (*nosAnswer, error) {
	line, err := json.Marshal(problem)
	if err != nil {
		return nil, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	reply, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("nos ended: %w; problem: %s", err, line)
	}
	answer := &nosAnswer{}
	if err := json.Unmarshal(reply, answer); err != nil {
		return nil, err
	}
	if answer.Kind == "Unreadable" {
		return nil, fmt.Errorf("nos cannot read the problem: %s", answer.Message)
	}
	return answer, nil
}

// forEachDevice visits all devices of the slices.
func forEachDevice(all []*resourceapi.ResourceSlice, visit func(*resourceapi.ResourceSlice, *resourceapi.Device)) {
	for _, slice := range all {
		for i := range slice.Spec.Devices {
			visit(slice, &slice.Spec.Devices[i])
		}
	}
}

// withUniqueNames renames slices that share a name, which no cluster has but some cases do.
func withUniqueNames(all []*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice {
	seen := map[string]int{}
	unique := make([]*resourceapi.ResourceSlice, len(all))
	for i, slice := range all {
		unique[i] = slice.DeepCopy()
		seen[slice.Name]++
		if seen[slice.Name] > 1 {
			unique[i].Name = fmt.Sprintf("%s-%03d", slice.Name, seen[slice.Name])
		}
	}
	return unique
}

// makeProblem describes a call of Kubernetes' allocator to nos.
func makeProblem(features Features, state AllocatedState, classes []*resourceapi.DeviceClass,
	all []*resourceapi.ResourceSlice, node *v1.Node, claims []*resourceapi.ResourceClaim) *nosProblem {
	problem := &nosProblem{Features: features, Classes: classes, Node: node, Claims: claims, Slices: withUniqueNames(all)}
	problem.OptionalNodeOperations = slices.Contains(node.Status.DeclaredFeatures,
		draoptionalnodeoperations.DRAOptionalNodeOperationsFeatureGate)
	use := func(id DeviceID, share string, capacity ConsumedCapacity) {
		result := resourceapi.DeviceRequestAllocationResult{
			Request: "r", Driver: id.Driver.String(), Pool: id.Pool.String(), Device: id.Device.String()}
		if share != "" {
			uid := *GenerateNewShareID()
			result.ShareID = &uid
		}
		for name, quantity := range capacity {
			if result.ConsumedCapacity == nil {
				result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{}
			}
			result.ConsumedCapacity[name] = quantity.DeepCopy()
		}
		problem.Allocated = append(problem.Allocated, result)
	}
	for id := range state.AllocatedDevices {
		use(id, "", nil)
	}
	for id := range state.AllocatedSharedDeviceIDs {
		use(id.GetDeviceID(), "share", nil)
	}
	for id, capacity := range state.AggregatedCapacity {
		use(id, "share", capacity)
	}
	return problem
}

// faultWords has a word of Kubernetes' error for each fault of nos, so that a refusal for another
// reason counts as a difference.
var faultWords = map[string][]string{
	"FeatureDisabled":          {"disabled"},
	"MissingClass":             {"could not retrieve"},
	"UnsupportedRequest":       {"unsupported"},
	"TooManyDevices":           {"claim limit"},
	"ExpressionFailed":         {"CEL", "derived attribute"},
	"CapacityNotRepresentable": {"represented"},
	"NegativeCapacity":         {"negative"},
	"ConstraintExcludesAll":    {"constraint"},
	"PoolIncomplete":           {"being updated"},
	"PoolInvalid":              {"invalid"},
}

func sameFault(answer *nosAnswer, err error) bool {
	return slices.ContainsFunc(faultWords[answer.Fault], func(word string) bool {
		return strings.Contains(err.Error(), word)
	}) && answer.NodeOnly == errors.Is(err, internal.ErrFailedAllocationOnNode)
}

// withoutShares returns a copy with equal share ids, which both sides invent.
func withoutShares(results []resourceapi.AllocationResult) []resourceapi.AllocationResult {
	copies := make([]resourceapi.AllocationResult, len(results))
	for i := range results {
		copies[i] = *results[i].DeepCopy()
		for j := range copies[i].Devices.Results {
			if share := copies[i].Devices.Results[j].ShareID; share != nil {
				*share = "share"
			}
		}
	}
	return copies
}

// conformance counts the calls of Kubernetes' tests.
type conformance struct {
	run, identical, otherDevices int
	differing                    []string
}

// nosPeer answers with nos, and runs Kubernetes' allocator beside it: for the text of errors, for the
// inner form of quantities that are equal, and for its count of steps, all of which the tests compare.
type nosPeer struct {
	*Allocator
	t        *testing.T
	counts   *conformance
	features Features
	state    AllocatedState
	lister   DeviceClassLister
	all      []*resourceapi.ResourceSlice
}

func (p *nosPeer) Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	wanted, wantedErr := p.Allocator.Allocate(ctx, node, claims)
	if ctx.Err() != nil {
		return wanted, wantedErr // cancelled on purpose: not a question of allocation
	}
	classes, err := p.lister.List()
	if err != nil {
		return nil, err
	}
	nos, err := startNos()
	if err != nil {
		return nil, err
	}
	answer, err := nos.ask(makeProblem(p.features, p.state, classes, p.all, node, claims))
	if err != nil {
		return nil, err
	}
	p.counts.run++
	differs := func(text string) {
		p.counts.differing = append(p.counts.differing, fmt.Sprintf("%s: %s", p.t.Name(), text))
	}
	switch {
	case answer.Kind == "Refused" && wantedErr != nil && sameFault(answer, wantedErr):
		p.counts.identical++
		return nil, wantedErr
	case answer.Kind == "Refused" || answer.Kind == "StepsExhausted":
		differs(fmt.Sprintf("nos %s: %s %s; Kubernetes: %v", answer.Kind, answer.Fault, answer.Message, wantedErr))
		return nil, fmt.Errorf("%s: %s", answer.Fault, answer.Message)
	case answer.Kind == "DoesNotFit":
		if wantedErr != nil || wanted != nil {
			differs(fmt.Sprintf("nos: does not fit; Kubernetes: %v", wantedErr))
			return nil, nil
		}
		p.counts.identical++
		return nil, nil
	}
	if wantedErr == nil && equality.Semantic.DeepEqual(withoutShares(wanted), withoutShares(answer.Allocations)) {
		p.counts.identical++
		return wanted, nil
	}
	if wantedErr == nil && wanted != nil {
		p.counts.otherDevices++ // the test decides whether they are as good
	} else {
		differs(fmt.Sprintf("nos allocates; Kubernetes: %v", wantedErr))
	}
	return answer.Allocations, nil
}

// TestNosConformance runs Kubernetes' tables of cases on nos.
func TestNosConformance(t *testing.T) {
	counts := &conformance{}
	make := func(t *testing.T) func(context.Context, Features, AllocatedState, DeviceClassLister, []*resourceapi.ResourceSlice, *cel.Cache) (internal.Allocator, error) {
		return func(ctx context.Context, features Features, state AllocatedState, lister DeviceClassLister,
			all []*resourceapi.ResourceSlice, cache *cel.Cache) (internal.Allocator, error) {
			allocator, err := NewAllocator(ctx, features, state, lister, all, cache)
			if err != nil {
				return nil, err
			}
			return &nosPeer{allocator, t, counts, features, state, lister, all}, nil
		}
	}
	allocatortesting.TestAllocator(t, SupportedFeatures, make(t))
	allocatortesting.TestLexicographicalAllocator(t, SupportedFeatures, make(t))
	fmt.Printf("nos conformance: %d cases run, %d equal, %d with other devices, %d differing\n",
		counts.run, counts.identical, counts.otherDevices, len(counts.differing))
	for _, text := range counts.differing {
		fmt.Printf("nos differs: %s\n", text)
	}
	if counts.run == 0 {
		t.Fatal("no case was run")
	}
}
