// Drives `nos sandbox` with client-go: list, watch, create, all kinds of patch, delete.
//
//	client_test KUBECONFIG
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const namespace = "default"

var patches = []struct {
	kind       types.PatchType
	step, body string
}{
	{types.MergePatchType, "merge", `{"metadata":{"labels":{"step":"merge"}}}`},
	{types.StrategicMergePatchType, "strategic", `{"metadata":{"labels":{"step":"strategic"}}}`},
	{types.JSONPatchType, "json", `[{"op":"replace","path":"/metadata/labels/step","value":"json"}]`},
	{types.ApplyPatchType, "apply", ""},
}

func must(err error) {
	if err != nil {
		log.Fatalf("%T: %v", err, err)
	}
}

func check(met bool, format string, arguments ...any) {
	if !met {
		log.Fatalf(format, arguments...)
	}
}

// The labels that a patch leaves.
type patcher func(kind types.PatchType, body []byte, options metav1.PatchOptions) map[string]string

func patchInAllWays(version, kind, name string, patch patcher, without ...types.PatchType) {
next:
	for _, p := range patches {
		for _, unserved := range without {
			if p.kind == unserved {
				continue next
			}
		}
		body, options := []byte(p.body), metav1.PatchOptions{}
		if p.kind == types.ApplyPatchType {
			force := true
			options = metav1.PatchOptions{FieldManager: "test", Force: &force}
			body, _ = json.Marshal(map[string]any{"apiVersion": version, "kind": kind,
				"metadata": map[string]any{"name": name, "labels": map[string]string{"step": "apply"}}})
		}
		labels := patch(p.kind, body, options)
		check(labels["step"] == p.step, "%s: %s gives %v", kind, p.kind, labels)
	}
}

func nodes(ctx context.Context, clients kubernetes.Interface) {
	api := clients.CoreV1().Nodes()
	list, err := api.List(ctx, metav1.ListOptions{})
	must(err)
	check(len(list.Items) > 0, "no nodes")
	extra := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "extra"}}
	extra.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("2048Mi")}
	extra, err = api.Create(ctx, extra, metav1.CreateOptions{})
	must(err)
	memory := extra.Status.Capacity["memory"]
	check(memory.String() == "2Gi", "memory is %s", memory.String())
	patchInAllWays("v1", "Node", "extra", func(kind types.PatchType, body []byte, options metav1.PatchOptions) map[string]string {
		node, err := api.Patch(ctx, "extra", kind, body, options)
		must(err)
		return node.Labels
	})
	must(api.Delete(ctx, "extra", metav1.DeleteOptions{}))
	_, err = api.Get(ctx, "extra", metav1.GetOptions{})
	check(errors.IsNotFound(err), "the deleted node: %v", err)
}

// waitFor reads events until `enough` holds.
func waitFor(w watch.Interface, enough func(watch.Event) bool) {
	defer w.Stop()
	timeout := time.After(2 * time.Minute)
	for {
		select {
		case event, open := <-w.ResultChan():
			check(open, "the watch ended")
			if enough(event) {
				return
			}
		case <-timeout:
			log.Fatal("nothing came in two minutes")
		}
	}
}

func pods(ctx context.Context, clients kubernetes.Interface) {
	api := clients.CoreV1().Pods(namespace)
	grace := int64(1)
	limits := corev1.ResourceList{"nvidia.com/mig-1g.5gb": resource.MustParse("1"), "cpu": resource.MustParse("0.5")}
	_, err := api.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": "p"}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{
			{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Limits: limits}}}},
	}, metav1.CreateOptions{})
	must(err)
	w, err := api.Watch(ctx, metav1.ListOptions{LabelSelector: "app=p"})
	must(err)
	waitFor(w, func(event watch.Event) bool {
		pod, ok := event.Object.(*corev1.Pod)
		return ok && pod.Status.Phase == corev1.PodRunning
	})
	logs, err := api.GetLogs("p", &corev1.PodLogOptions{}).Stream(ctx)
	must(err)
	text, err := io.ReadAll(logs)
	must(err)
	check(strings.Contains(string(text), "device nvidia.com/mig-1g.5gb"), "log: %s", text)
	patchInAllWays("v1", "Pod", "p", func(kind types.PatchType, body []byte, options metav1.PatchOptions) map[string]string {
		pod, err := api.Patch(ctx, "p", kind, body, options)
		must(err)
		return pod.Labels
	})
	w, err = api.Watch(ctx, metav1.ListOptions{LabelSelector: "app=p"})
	must(err)
	must(api.Delete(ctx, "p", metav1.DeleteOptions{}))
	waitFor(w, func(event watch.Event) bool { return event.Type == watch.Deleted })
}

func resourceQuotas(ctx context.Context, clients kubernetes.Interface) {
	api := clients.CoreV1().ResourceQuotas(namespace)
	quota, err := api.Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("10")}},
	}, metav1.CreateOptions{})
	must(err)
	hard := quota.Spec.Hard["pods"]
	check(hard.String() == "10", "hard is %s", hard.String())
	patchInAllWays("v1", "ResourceQuota", "q", func(kind types.PatchType, body []byte, options metav1.PatchOptions) map[string]string {
		quota, err := api.Patch(ctx, "q", kind, body, options)
		must(err)
		return quota.Labels
	})
	must(api.Delete(ctx, "q", metav1.DeleteOptions{}))
	left, err := api.List(ctx, metav1.ListOptions{})
	must(err)
	check(len(left.Items) == 0, "the quota is still there")
}

func elasticQuotas(ctx context.Context, client dynamic.Interface) {
	api := client.Resource(schema.GroupVersionResource{
		Group: "nos.nebuly.com", Version: "v1alpha1", Resource: "elasticquotas"}).Namespace(namespace)
	const version, kind = "nos.nebuly.com/v1alpha1", "ElasticQuota"
	_, err := api.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "e"},
		"spec": map[string]any{"min": map[string]any{"nos.nebuly.com/gpu-memory": int64(10)}},
	}}, metav1.CreateOptions{})
	must(err)
	patchInAllWays(version, kind, "e", func(kind types.PatchType, body []byte, options metav1.PatchOptions) map[string]string {
		quota, err := api.Patch(ctx, "e", kind, body, options)
		must(err)
		return quota.GetLabels()
	}, types.StrategicMergePatchType)
	w, err := api.Watch(ctx, metav1.ListOptions{})
	must(err)
	must(api.Delete(ctx, "e", metav1.DeleteOptions{}))
	waitFor(w, func(event watch.Event) bool { return event.Type == watch.Deleted })
}

func claims(ctx context.Context, clients kubernetes.Interface) {
	api := clients.ResourceV1().ResourceClaims(namespace)
	request := resourcev1.DeviceRequest{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com"}}
	claim, err := api.Create(ctx, &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "r"},
		Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{request}}},
	}, metav1.CreateOptions{})
	must(err)
	check(claim.Spec.Devices.Requests[0].Exactly.Count == 1, "the count has no default")
	patchInAllWays("resource.k8s.io/v1", "ResourceClaim", "r", func(kind types.PatchType, body []byte, options metav1.PatchOptions) map[string]string {
		claim, err := api.Patch(ctx, "r", kind, body, options)
		must(err)
		return claim.Labels
	})
	must(api.Delete(ctx, "r", metav1.DeleteOptions{}))
}

// An informer, the way in which controllers read, sees the Deployment become available.
func deployments(ctx context.Context, clients kubernetes.Interface) {
	replicas := int32(2)
	labels := map[string]string{"app": "d"}
	available := make(chan struct{}, 100)
	factory := informers.NewSharedInformerFactory(clients, 0)
	_, err := factory.Apps().V1().Deployments().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object any) {
			if object.(*appsv1.Deployment).Status.AvailableReplicas == replicas {
				available <- struct{}{}
			}
		}})
	must(err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	api := clients.AppsV1().Deployments(namespace)
	_, err = api.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}},
	}, metav1.CreateOptions{})
	must(err)
	select {
	case <-available:
	case <-time.After(2 * time.Minute):
		log.Fatal("the deployment is not available after two minutes")
	}
	scale, err := api.GetScale(ctx, "d", metav1.GetOptions{})
	must(err)
	check(scale.Status.Selector == "app=d", "selector %q", scale.Status.Selector)
	scale.Spec.Replicas = 0
	_, err = api.UpdateScale(ctx, "d", scale, metav1.UpdateOptions{})
	must(err)
	must(api.Delete(ctx, "d", metav1.DeleteOptions{}))
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, format := range []string{"", "application/vnd.kubernetes.protobuf"} {
		config.ContentType = format // of bodies; the server answers in JSON
		config.AcceptContentTypes = "application/json"
		clients := kubernetes.NewForConfigOrDie(config)
		nodes(ctx, clients)
		pods(ctx, clients)
		resourceQuotas(ctx, clients)
		claims(ctx, clients)
		deployments(ctx, clients)
	}
	config.ContentType = ""
	elasticQuotas(ctx, dynamic.NewForConfigOrDie(config))
	fmt.Println("passed")
}
