// The messages of the built-in kinds, from generated.proto in k8s.io/api, k8s.io/apimachinery and
// k8s.io/apiextensions-apiserver (master of July 2026; field numbers never change). Each line is a
// message; a line that starts with a space continues the previous one:
//
//   Message number:jsonName:type ...
//
// Types: s string, i integer, b boolean, y bytes (base64 in JSON), d double, Q Quantity, T Time, U
// MicroTime, I IntOrString, R raw JSON, O an object that is accepted only as JSON, or a message
// name. Prefixes: * repeated, % map from string, ^ a message whose fields are inlined in JSON, ! a
// field that is never absent in an answer: types.go declares it without omitempty, or it is a
// struct and no pointer (k8s.io/api 0.37).
// Messages of events.k8s.io begin with "Events", EndpointPort of discovery.k8s.io with "Discovery".
//
// Every message has all its fields, including alpha features: a field that is missing here counts
// as a mistake and is dropped (unknown.h). The content of an O is not checked and stays as sent:
// volume sources of storage that was removed from Kubernetes, a few alpha features, and the schemas
// in CustomResourceDefinitions.
#include "sim/apiserver/schemas/fields.h"

namespace nos::sim {

const std::string_view kWireSchema = R"(
Affinity 1:nodeAffinity:NodeAffinity 2:podAffinity:PodAffinity 3:podAntiAffinity:PodAntiAffinity
AggregationRule 1:clusterRoleSelectors:*LabelSelector
AllocatedDeviceStatus 1:driver:!s 2:pool:!s 3:device:!s 7:shareID:s 4:conditions:*Condition 5:data:R
 6:networkData:NetworkDeviceData
AllocationResult 1:devices:!DeviceAllocationResult 3:nodeSelector:NodeSelector
 5:allocationTimestamp:T
AppArmorProfile 1:type:!s 2:localhostProfile:s
AttachedVolume 1:name:!s 2:devicePath:!s
AuditAnnotation 1:key:!s 2:valueExpression:!s
Binding 1:metadata:!ObjectMeta 2:target:!ObjectReference
CELDeviceSelector 1:expression:!s
CSIDriver 1:metadata:!ObjectMeta 2:spec:!CSIDriverSpec
CSIDriverSpec 1:attachRequired:b 2:podInfoOnMount:b 3:volumeLifecycleModes:*s 4:storageCapacity:b
 5:fsGroupPolicy:s 6:tokenRequests:*TokenRequest 7:requiresRepublish:b 8:seLinuxMount:b
 9:nodeAllocatableUpdatePeriodSeconds:i 10:serviceAccountTokenInSecrets:b
 11:preventPodSchedulingIfMissing:b
CSINode 1:metadata:!ObjectMeta 2:spec:!CSINodeSpec 3:status:O
CSINodeDriver 1:name:!s 2:nodeID:!s 3:topologyKeys:*s 4:allocatable:VolumeNodeResources
CSINodeSpec 1:drivers:*CSINodeDriver
CSIPersistentVolumeSource 1:driver:!s 2:volumeHandle:!s 3:readOnly:b 4:fsType:s
 5:volumeAttributes:%s 6:controllerPublishSecretRef:SecretReference
 7:nodeStageSecretRef:SecretReference 8:nodePublishSecretRef:SecretReference
 9:controllerExpandSecretRef:SecretReference 10:nodeExpandSecretRef:SecretReference
CSIVolumeSource 1:driver:!s 2:readOnly:b 3:fsType:s 4:volumeAttributes:%s
 5:nodePublishSecretRef:LocalObjectReference
Capabilities 1:add:*s 2:drop:*s
CapacityRequestPolicy 1:default:Q 3:validValues:*Q 4:validRange:CapacityRequestPolicyRange
CapacityRequestPolicyRange 1:min:Q 2:max:Q 3:step:Q
CapacityRequirements 1:requests:%Q
ClientIPConfig 1:timeoutSeconds:i
ClusterRole 1:metadata:!ObjectMeta 2:rules:*PolicyRule 3:aggregationRule:AggregationRule
ClusterRoleBinding 1:metadata:!ObjectMeta 2:subjects:*Subject 3:roleRef:!RoleRef
ClusterTrustBundleProjection 1:name:s 2:signerName:s 3:labelSelector:LabelSelector 5:optional:b
 4:path:!s 6:user:i
Condition 1:type:!s 2:status:!s 3:observedGeneration:i 4:lastTransitionTime:T 5:reason:!s
 6:message:!s
ConfigMap 1:metadata:!ObjectMeta 4:immutable:b 2:data:%s 3:binaryData:%y
ConfigMapEnvSource 1:localObjectReference:^LocalObjectReference 2:optional:b
ConfigMapKeySelector 1:localObjectReference:^LocalObjectReference 2:key:!s 3:optional:b
ConfigMapNodeConfigSource 1:namespace:!s 2:name:!s 3:uid:s 4:resourceVersion:s 5:kubeletConfigKey:!s
ConfigMapProjection 1:localObjectReference:^LocalObjectReference 2:items:*KeyToPath 4:optional:b
ConfigMapVolumeSource 1:localObjectReference:^LocalObjectReference 2:items:*KeyToPath
 3:defaultMode:i 4:optional:b 5:defaultUser:i
Container 1:name:!s 2:image:s 3:command:*s 4:args:*s 5:workingDir:s 6:ports:*ContainerPort
 19:envFrom:*EnvFromSource 7:env:*EnvVar 8:resources:!ResourceRequirements
 23:resizePolicy:*ContainerResizePolicy 24:restartPolicy:s
 25:restartPolicyRules:*ContainerRestartRule 9:volumeMounts:*VolumeMount
 21:volumeDevices:*VolumeDevice 10:livenessProbe:Probe 11:readinessProbe:Probe 22:startupProbe:Probe
 12:lifecycle:Lifecycle 13:terminationMessagePath:s 20:terminationMessagePolicy:s
 14:imagePullPolicy:s 15:securityContext:SecurityContext 16:stdin:b 17:stdinOnce:b 18:tty:b
ContainerExtendedResourceRequest 1:containerName:!s 2:resourceName:!s 3:requestName:!s
ContainerImage 1:names:*s 2:sizeBytes:i
ContainerPort 1:name:s 2:hostPort:i 3:containerPort:!i 4:protocol:s 5:hostIP:s
ContainerResizePolicy 1:resourceName:!s 2:restartPolicy:!s
ContainerResourceClaim 1:name:s 2:request:s
ContainerResourceMetricSource 1:name:!s 2:target:!MetricTarget 3:container:!s
ContainerResourceMetricStatus 1:name:!s 2:current:!MetricValueStatus 3:container:!s
ContainerRestartRule 1:action:s 2:exitCodes:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes 1:operator:s 2:values:*i
ContainerState 1:waiting:ContainerStateWaiting 2:running:ContainerStateRunning
 3:terminated:ContainerStateTerminated
ContainerStateRunning 1:startedAt:T
ContainerStateTerminated 1:exitCode:!i 2:signal:i 3:reason:s 4:message:s 5:startedAt:T
 6:finishedAt:T 7:containerID:s
ContainerStateWaiting 1:reason:s 2:message:s
ContainerStatus 1:name:!s 2:state:!ContainerState 3:lastState:!ContainerState 4:ready:!b
 5:restartCount:!i 6:image:!s 7:imageID:!s 8:containerID:s 9:started:b 10:allocatedResources:%Q
 11:resources:ResourceRequirements 12:volumeMounts:*VolumeMountStatus 13:user:ContainerUser
 14:allocatedResourcesStatus:*ResourceStatus 15:stopSignal:s
ContainerUser 1:linux:LinuxContainerUser
ControllerRevision 1:metadata:!ObjectMeta 2:data:R 3:revision:!i
Counter 1:value:!Q
CounterSet 1:name:!s 2:counters:%Counter
CronJob 1:metadata:!ObjectMeta 2:spec:!CronJobSpec 3:status:!CronJobStatus
CronJobSpec 1:schedule:!s 8:timeZone:s 2:startingDeadlineSeconds:i 3:concurrencyPolicy:s 4:suspend:b
 5:jobTemplate:!JobTemplateSpec 6:successfulJobsHistoryLimit:i 7:failedJobsHistoryLimit:i
CronJobStatus 1:active:*ObjectReference 4:lastScheduleTime:T 5:lastSuccessfulTime:T
CrossVersionObjectReference 1:kind:!s 2:name:!s 3:apiVersion:s
CustomResourceColumnDefinition 1:name:!s 2:type:!s 3:format:s 4:description:s 5:priority:i
 6:jsonPath:!s
CustomResourceConversion 1:strategy:!s 2:webhook:WebhookConversion
CustomResourceDefinition 1:metadata:!ObjectMeta 2:spec:!CustomResourceDefinitionSpec
 3:status:!CustomResourceDefinitionStatus
CustomResourceDefinitionCondition 1:type:!s 2:status:!s 3:lastTransitionTime:T 4:reason:s
 5:message:s 6:observedGeneration:i
CustomResourceDefinitionNames 1:plural:!s 2:singular:s 3:shortNames:*s 4:kind:!s 5:listKind:s
 6:categories:*s
CustomResourceDefinitionSpec 1:group:!s 3:names:!CustomResourceDefinitionNames 4:scope:!s
 7:versions:*CustomResourceDefinitionVersion 9:conversion:CustomResourceConversion
 10:preserveUnknownFields:b
CustomResourceDefinitionStatus 1:conditions:*CustomResourceDefinitionCondition
 2:acceptedNames:!CustomResourceDefinitionNames 3:storedVersions:*s 4:observedGeneration:i
CustomResourceDefinitionVersion 1:name:!s 2:served:!b 3:storage:!b 7:deprecated:b
 8:deprecationWarning:s 4:schema:CustomResourceValidation 5:subresources:CustomResourceSubresources
 6:additionalPrinterColumns:*CustomResourceColumnDefinition 9:selectableFields:*SelectableField
CustomResourceSubresourceScale 1:specReplicasPath:!s 2:statusReplicasPath:!s 3:labelSelectorPath:s
CustomResourceSubresources 1:status:O 2:scale:CustomResourceSubresourceScale
CustomResourceValidation 1:openAPIV3Schema:O
DaemonEndpoint 1:Port:!i
DaemonSet 1:metadata:!ObjectMeta 2:spec:!DaemonSetSpec 3:status:!DaemonSetStatus
DaemonSetCondition 1:type:!s 2:status:!s 3:lastTransitionTime:T 4:reason:s 5:message:s
DaemonSetSpec 1:selector:LabelSelector 2:template:!PodTemplateSpec
 3:updateStrategy:!DaemonSetUpdateStrategy 4:minReadySeconds:i 6:revisionHistoryLimit:i
DaemonSetStatus 1:currentNumberScheduled:!i 2:numberMisscheduled:!i 3:desiredNumberScheduled:!i
 4:numberReady:!i 5:observedGeneration:i 6:updatedNumberScheduled:i 7:numberAvailable:i
 8:numberUnavailable:i 9:collisionCount:i 10:conditions:*DaemonSetCondition
DaemonSetUpdateStrategy 1:type:s 2:rollingUpdate:RollingUpdateDaemonSet
DeleteOptions 1:gracePeriodSeconds:i 2:preconditions:Preconditions 3:orphanDependents:b
 4:propagationPolicy:s 5:dryRun:*s 6:ignoreStoreReadErrorWithClusterBreakingPotential:b
Deployment 1:metadata:!ObjectMeta 2:spec:!DeploymentSpec 3:status:!DeploymentStatus
DeploymentCondition 1:type:!s 2:status:!s 6:lastUpdateTime:T 7:lastTransitionTime:T 4:reason:s
 5:message:s
DeploymentSpec 1:replicas:i 2:selector:LabelSelector 3:template:!PodTemplateSpec
 4:strategy:!DeploymentStrategy 5:minReadySeconds:i 6:revisionHistoryLimit:i 7:paused:b
 9:progressDeadlineSeconds:i
DeploymentStatus 1:observedGeneration:i 2:replicas:i 3:updatedReplicas:i 7:readyReplicas:i
 4:availableReplicas:i 5:unavailableReplicas:i 9:terminatingReplicas:i
 6:conditions:*DeploymentCondition 8:collisionCount:i
DeploymentStrategy 1:type:s 2:rollingUpdate:RollingUpdateDeployment
Device 1:name:!s 2:attributes:%DeviceAttribute 3:capacity:%DeviceCapacity
 4:consumesCounters:*DeviceCounterConsumption 5:nodeName:s 6:nodeSelector:NodeSelector 7:allNodes:b
 8:taints:*DeviceTaint 9:bindsToNode:b 10:bindingConditions:*s 11:bindingFailureConditions:*s
 12:allowMultipleAllocations:b 14:nodeAllocatableResources:%NodeAllocatableResource
DeviceAllocationConfiguration 1:source:!s 2:requests:*s 3:deviceConfiguration:^DeviceConfiguration
DeviceAllocationResult 1:results:*DeviceRequestAllocationResult
 2:config:*DeviceAllocationConfiguration
DeviceAttribute 2:int:i 3:bool:b 4:string:s 5:version:s 6:ints:*i 7:bools:*b 8:strings:*s
 9:versions:*s
DeviceCapacity 1:value:!Q 2:requestPolicy:CapacityRequestPolicy
DeviceClaim 1:requests:*DeviceRequest 2:constraints:*DeviceConstraint
 3:config:*DeviceClaimConfiguration
DeviceClaimConfiguration 1:requests:*s 2:deviceConfiguration:^DeviceConfiguration
DeviceClass 1:metadata:!ObjectMeta 2:spec:!DeviceClassSpec
DeviceClassConfiguration 1:deviceConfiguration:^DeviceConfiguration
DeviceClassSpec 1:selectors:*DeviceSelector 2:config:*DeviceClassConfiguration
 4:extendedResourceName:s
DeviceConfiguration 1:opaque:OpaqueDeviceConfiguration
DeviceConstraint 1:requests:*s 2:matchAttribute:s 3:distinctAttribute:s
DeviceCounterConsumption 1:counterSet:!s 2:counters:%Counter
DeviceRequest 1:name:!s 2:exactly:ExactDeviceRequest 3:firstAvailable:*DeviceSubRequest
DeviceRequestAllocationResult 1:request:!s 2:driver:!s 3:pool:!s 4:device:!s 5:adminAccess:b
 6:tolerations:*DeviceToleration 7:bindingConditions:*s 8:bindingFailureConditions:*s 9:shareID:s
 10:consumedCapacity:%Q 11:skipNodeOperations:*s
DeviceSelector 1:cel:CELDeviceSelector
DeviceSubRequest 1:name:!s 2:deviceClassName:!s 3:selectors:*DeviceSelector 4:allocationMode:s
 5:count:i 6:tolerations:*DeviceToleration 7:capacity:CapacityRequirements
DeviceTaint 1:key:!s 2:value:s 3:effect:!s 4:timeAdded:T
DeviceTaintRule 1:metadata:!ObjectMeta 2:spec:!DeviceTaintRuleSpec 3:status:!DeviceTaintRuleStatus
DeviceTaintRuleSpec 1:deviceSelector:DeviceTaintSelector 2:taint:!DeviceTaint
DeviceTaintRuleStatus 1:conditions:*Condition
DeviceTaintSelector 2:driver:s 3:pool:s 4:device:s
DeviceToleration 1:key:s 2:operator:s 3:value:s 4:effect:s 5:tolerationSeconds:i
DiscoveryEndpointPort 1:name:s 2:protocol:s 3:port:i 4:appProtocol:s
DownwardAPIProjection 1:items:*DownwardAPIVolumeFile
DownwardAPIVolumeFile 1:path:!s 2:fieldRef:ObjectFieldSelector
 3:resourceFieldRef:ResourceFieldSelector 4:mode:i 5:user:i
DownwardAPIVolumeSource 1:items:*DownwardAPIVolumeFile 2:defaultMode:i 3:defaultUser:i
EmptyDirVolumeSource 1:medium:s 2:sizeLimit:Q 3:mode:i
Endpoint 1:addresses:*s 2:conditions:!EndpointConditions 3:hostname:s 4:targetRef:ObjectReference
 5:deprecatedTopology:%s 6:nodeName:s 7:zone:s 8:hints:EndpointHints
EndpointAddress 1:ip:!s 3:hostname:s 4:nodeName:s 2:targetRef:ObjectReference
EndpointConditions 1:ready:b 2:serving:b 3:terminating:b
EndpointHints 1:forZones:*ForZone 2:forNodes:*ForNode
EndpointPort 1:name:s 2:port:!i 3:protocol:s 4:appProtocol:s
EndpointSlice 1:metadata:!ObjectMeta 4:addressType:!s 2:endpoints:*Endpoint
 3:ports:*DiscoveryEndpointPort
EndpointSubset 1:addresses:*EndpointAddress 2:notReadyAddresses:*EndpointAddress
 3:ports:*EndpointPort
Endpoints 1:metadata:!ObjectMeta 2:subsets:*EndpointSubset
EnvFromSource 1:prefix:s 2:configMapRef:ConfigMapEnvSource 3:secretRef:SecretEnvSource
EnvVar 1:name:!s 2:value:s 3:valueFrom:EnvVarSource
EnvVarSource 1:fieldRef:ObjectFieldSelector 2:resourceFieldRef:ResourceFieldSelector
 3:configMapKeyRef:ConfigMapKeySelector 4:secretKeyRef:SecretKeySelector
 5:fileKeyRef:FileKeySelector
EphemeralContainer 1:ephemeralContainerCommon:^EphemeralContainerCommon 2:targetContainerName:s
EphemeralContainerCommon 1:name:!s 2:image:s 3:command:*s 4:args:*s 5:workingDir:s
 6:ports:*ContainerPort 19:envFrom:*EnvFromSource 7:env:*EnvVar 8:resources:!ResourceRequirements
 23:resizePolicy:*ContainerResizePolicy 24:restartPolicy:s
 25:restartPolicyRules:*ContainerRestartRule 9:volumeMounts:*VolumeMount
 21:volumeDevices:*VolumeDevice 10:livenessProbe:Probe 11:readinessProbe:Probe 22:startupProbe:Probe
 12:lifecycle:Lifecycle 13:terminationMessagePath:s 20:terminationMessagePolicy:s
 14:imagePullPolicy:s 15:securityContext:SecurityContext 16:stdin:b 17:stdinOnce:b 18:tty:b
EphemeralVolumeSource 1:volumeClaimTemplate:PersistentVolumeClaimTemplate
Event 1:metadata:!ObjectMeta 2:involvedObject:!ObjectReference 3:reason:s 4:message:s
 5:source:!EventSource 6:firstTimestamp:T 7:lastTimestamp:T 8:count:i 9:type:s 10:eventTime:U
 11:series:EventSeries 12:action:s 13:related:ObjectReference 14:reportingComponent:!s
 15:reportingInstance:!s
EventSeries 1:count:i 2:lastObservedTime:U
EventSource 1:component:s 2:host:s
EventsEvent 1:metadata:!ObjectMeta 2:eventTime:U 3:series:EventsEventSeries 4:reportingController:s
 5:reportingInstance:s 6:action:s 7:reason:s 8:regarding:!ObjectReference 9:related:ObjectReference
 10:note:s 11:type:s 12:deprecatedSource:!EventSource 13:deprecatedFirstTimestamp:T
 14:deprecatedLastTimestamp:T 15:deprecatedCount:i
EventsEventSeries 1:count:!i 2:lastObservedTime:U
Eviction 1:metadata:!ObjectMeta 2:deleteOptions:DeleteOptions
ExactDeviceRequest 1:deviceClassName:!s 2:selectors:*DeviceSelector 3:allocationMode:s 4:count:i
 5:adminAccess:b 6:tolerations:*DeviceToleration 7:capacity:CapacityRequirements
ExecAction 1:command:*s
ExpressionWarning 2:fieldRef:!s 3:warning:!s
ExternalMetricSource 1:metric:!MetricIdentifier 2:target:!MetricTarget
ExternalMetricStatus 1:metric:!MetricIdentifier 2:current:!MetricValueStatus
FCVolumeSource 1:targetWWNs:*s 2:lun:i 3:fsType:s 4:readOnly:b 5:wwids:*s
FileKeySelector 1:volumeName:!s 2:path:!s 3:key:!s 4:optional:b
ForNode 1:name:!s
ForZone 1:name:!s
GRPCAction 1:port:!i 2:service:s 3:mode:s
HPAScalingPolicy 1:type:!s 2:value:!i 3:periodSeconds:!i
HPAScalingRules 3:stabilizationWindowSeconds:i 1:selectPolicy:s 2:policies:*HPAScalingPolicy
 4:tolerance:Q
HTTPGetAction 1:path:s 2:port:I 3:host:s 4:scheme:s 5:httpHeaders:*HTTPHeader 6:protocol:s
HTTPHeader 1:name:!s 2:value:!s
HTTPIngressPath 1:path:s 3:pathType:s 2:backend:!IngressBackend
HTTPIngressRuleValue 1:paths:*HTTPIngressPath
HorizontalPodAutoscaler 1:metadata:!ObjectMeta 2:spec:!HorizontalPodAutoscalerSpec
 3:status:!HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerBehavior 1:scaleUp:HPAScalingRules 2:scaleDown:HPAScalingRules
HorizontalPodAutoscalerCondition 1:type:!s 2:status:!s 3:lastTransitionTime:T 4:reason:s 5:message:s
 6:observedGeneration:i
HorizontalPodAutoscalerSpec 1:scaleTargetRef:!CrossVersionObjectReference 2:minReplicas:i
 3:maxReplicas:!i 4:metrics:*MetricSpec 5:behavior:HorizontalPodAutoscalerBehavior
HorizontalPodAutoscalerStatus 1:observedGeneration:i 2:lastScaleTime:T 3:currentReplicas:!i
 4:desiredReplicas:!i 5:currentMetrics:*MetricStatus 6:conditions:*HorizontalPodAutoscalerCondition
HostAlias 1:ip:!s 2:hostnames:*s
HostIP 1:ip:!s
HostPathVolumeSource 1:path:!s 2:type:s
IPBlock 1:cidr:!s 2:except:*s
ISCSIPersistentVolumeSource 1:targetPortal:!s 2:iqn:!s 3:lun:!i 4:iscsiInterface:s 5:fsType:s
 6:readOnly:b 7:portals:*s 8:chapAuthDiscovery:b 11:chapAuthSession:b 10:secretRef:SecretReference
 12:initiatorName:s
ImageVolumeSource 1:reference:s 2:pullPolicy:s
Ingress 1:metadata:!ObjectMeta 2:spec:!IngressSpec 3:status:!IngressStatus
IngressBackend 4:service:IngressServiceBackend 3:resource:TypedLocalObjectReference
IngressClass 1:metadata:!ObjectMeta 2:spec:!IngressClassSpec
IngressClassParametersReference 1:apiGroup:s 2:kind:!s 3:name:!s 4:scope:s 5:namespace:s
IngressClassSpec 1:controller:s 2:parameters:IngressClassParametersReference
IngressLoadBalancerIngress 1:ip:s 2:hostname:s 4:ports:*IngressPortStatus
IngressLoadBalancerStatus 1:ingress:*IngressLoadBalancerIngress
IngressPortStatus 1:port:!i 2:protocol:!s 3:error:s
IngressRule 1:host:s 2:ingressRuleValue:^IngressRuleValue
IngressRuleValue 1:http:HTTPIngressRuleValue
IngressServiceBackend 1:name:!s 2:port:!ServiceBackendPort
IngressSpec 4:ingressClassName:s 1:defaultBackend:IngressBackend 2:tls:*IngressTLS
 3:rules:*IngressRule
IngressStatus 1:loadBalancer:!IngressLoadBalancerStatus
IngressTLS 1:hosts:*s 2:secretName:s
Job 1:metadata:!ObjectMeta 2:spec:!JobSpec 3:status:!JobStatus
JobCondition 1:type:!s 2:status:!s 3:lastProbeTime:T 4:lastTransitionTime:T 5:reason:s 6:message:s
JobSpec 1:parallelism:i 2:completions:i 3:activeDeadlineSeconds:i
 11:podFailurePolicy:PodFailurePolicy 16:successPolicy:SuccessPolicy 7:backoffLimit:i
 12:backoffLimitPerIndex:i 13:maxFailedIndexes:i 4:selector:LabelSelector 5:manualSelector:b
 6:template:!PodTemplateSpec 8:ttlSecondsAfterFinished:i 9:completionMode:s 10:suspend:b
 14:podReplacementPolicy:s 15:managedBy:s 17:scheduling:O
JobStatus 1:conditions:*JobCondition 2:startTime:T 3:completionTime:T 4:active:i 5:succeeded:i
 6:failed:i 11:terminating:i 7:completedIndexes:s 10:failedIndexes:s
 8:uncountedTerminatedPods:UncountedTerminatedPods 9:ready:i
JobTemplateSpec 1:metadata:!ObjectMeta 2:spec:!JobSpec
KeyToPath 1:key:!s 2:path:!s 3:mode:i 4:user:i
LabelSelector 1:matchLabels:%s 2:matchExpressions:*LabelSelectorRequirement
LabelSelectorRequirement 1:key:!s 2:operator:!s 3:values:*s
Lease 1:metadata:!ObjectMeta 2:spec:!LeaseSpec
LeaseSpec 1:holderIdentity:s 2:leaseDurationSeconds:i 3:acquireTime:U 4:renewTime:U
 5:leaseTransitions:i 6:strategy:s 7:preferredHolder:s
Lifecycle 1:postStart:LifecycleHandler 2:preStop:LifecycleHandler 3:stopSignal:s
LifecycleHandler 1:exec:ExecAction 2:httpGet:HTTPGetAction 3:tcpSocket:TCPSocketAction
 4:sleep:SleepAction
LimitRange 1:metadata:!ObjectMeta 2:spec:!LimitRangeSpec
LimitRangeItem 1:type:!s 2:max:%Q 3:min:%Q 4:default:%Q 5:defaultRequest:%Q
 6:maxLimitRequestRatio:%Q
LimitRangeSpec 1:limits:*LimitRangeItem
LinuxContainerUser 1:uid:!i 2:gid:!i 3:supplementalGroups:*i
LoadBalancerIngress 1:ip:s 2:hostname:s 3:ipMode:s 4:ports:*PortStatus
LoadBalancerStatus 1:ingress:*LoadBalancerIngress
LocalObjectReference 1:name:s
LocalVolumeSource 1:path:!s 2:fsType:s
ManagedFieldsEntry 1:manager:s 2:operation:s 3:apiVersion:s 4:time:T 6:fieldsType:s 7:fieldsV1:R
 8:subresource:s
MatchCondition 1:name:!s 2:expression:!s
MatchResources 1:namespaceSelector:LabelSelector 2:objectSelector:LabelSelector
 3:resourceRules:*NamedRuleWithOperations 4:excludeResourceRules:*NamedRuleWithOperations
 7:matchPolicy:s
MetricIdentifier 1:name:!s 2:selector:LabelSelector
MetricSpec 1:type:!s 2:object:ObjectMetricSource 3:pods:PodsMetricSource
 4:resource:ResourceMetricSource 7:containerResource:ContainerResourceMetricSource
 5:external:ExternalMetricSource
MetricStatus 1:type:!s 2:object:ObjectMetricStatus 3:pods:PodsMetricStatus
 4:resource:ResourceMetricStatus 7:containerResource:ContainerResourceMetricStatus
 5:external:ExternalMetricStatus
MetricTarget 1:type:!s 2:value:Q 3:averageValue:Q 4:averageUtilization:i
MetricValueStatus 1:value:Q 2:averageValue:Q 3:averageUtilization:i
ModifyVolumeStatus 1:targetVolumeAttributesClassName:s 2:status:!s
MutatingWebhook 1:name:!s 2:clientConfig:!WebhookClientConfig 3:rules:*RuleWithOperations
 4:failurePolicy:s 9:matchPolicy:s 5:namespaceSelector:LabelSelector 11:objectSelector:LabelSelector
 6:sideEffects:s 7:timeoutSeconds:i 8:admissionReviewVersions:*s 10:reinvocationPolicy:s
 12:matchConditions:*MatchCondition
MutatingWebhookConfiguration 1:metadata:!ObjectMeta 2:webhooks:*MutatingWebhook
NFSVolumeSource 1:server:!s 2:path:!s 3:readOnly:b
NamedRuleWithOperations 1:resourceNames:*s 2:ruleWithOperations:^RuleWithOperations
Namespace 1:metadata:!ObjectMeta 2:spec:!NamespaceSpec 3:status:!NamespaceStatus
NamespaceCondition 1:type:!s 2:status:!s 4:lastTransitionTime:T 5:reason:s 6:message:s
NamespaceSpec 1:finalizers:*s
NamespaceStatus 1:phase:s 2:conditions:*NamespaceCondition
NetworkDeviceData 1:interfaceName:s 2:ips:*s 3:hardwareAddress:s
NetworkPolicy 1:metadata:!ObjectMeta 2:spec:!NetworkPolicySpec
NetworkPolicyEgressRule 1:ports:*NetworkPolicyPort 2:to:*NetworkPolicyPeer
NetworkPolicyIngressRule 1:ports:*NetworkPolicyPort 2:from:*NetworkPolicyPeer
NetworkPolicyPeer 1:podSelector:LabelSelector 2:namespaceSelector:LabelSelector 3:ipBlock:IPBlock
NetworkPolicyPort 1:protocol:s 2:port:I 3:endPort:i
NetworkPolicySpec 1:podSelector:!LabelSelector 2:ingress:*NetworkPolicyIngressRule
 3:egress:*NetworkPolicyEgressRule 4:policyTypes:*s
Node 1:metadata:!ObjectMeta 2:spec:!NodeSpec 3:status:!NodeStatus
NodeAddress 1:type:!s 2:address:!s
NodeAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
 2:preferredDuringSchedulingIgnoredDuringExecution:*PreferredSchedulingTerm
NodeAllocatableMapping 1:capacityKey:s 2:capacityMultiplier:Q 3:deviceMultiplier:Q
NodeAllocatableOverhead 1:perPod:Q 2:perContainer:Q
NodeAllocatableResource 3:mapping:NodeAllocatableMapping 4:overhead:NodeAllocatableOverhead
NodeCondition 1:type:!s 2:status:!s 3:lastHeartbeatTime:T 4:lastTransitionTime:T 5:reason:s
 6:message:s
NodeConfigSource 2:configMap:ConfigMapNodeConfigSource
NodeConfigStatus 1:assigned:NodeConfigSource 2:active:NodeConfigSource
 3:lastKnownGood:NodeConfigSource 4:error:s
NodeDaemonEndpoints 1:kubeletEndpoint:!DaemonEndpoint
NodeFeatures 1:supplementalGroupsPolicy:b
NodeRuntimeHandler 1:name:!s 2:features:NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures 1:recursiveReadOnlyMounts:b 2:userNamespaces:b
NodeSelector 1:nodeSelectorTerms:*NodeSelectorTerm
NodeSelectorRequirement 1:key:!s 2:operator:!s 3:values:*s
NodeSelectorTerm 1:matchExpressions:*NodeSelectorRequirement 2:matchFields:*NodeSelectorRequirement
NodeSpec 1:podCIDR:s 7:podCIDRs:*s 3:providerID:s 4:unschedulable:b 5:taints:*Taint
 6:configSource:NodeConfigSource 2:externalID:s 8:podPreemptionPolicy:O
NodeStatus 1:capacity:%Q 2:allocatable:%Q 3:phase:s 4:conditions:*NodeCondition
 5:addresses:*NodeAddress 6:daemonEndpoints:!NodeDaemonEndpoints 7:nodeInfo:!NodeSystemInfo
 8:images:*ContainerImage 9:volumesInUse:*s 10:volumesAttached:*AttachedVolume
 11:config:NodeConfigStatus 12:runtimeHandlers:*NodeRuntimeHandler 13:features:NodeFeatures
 14:declaredFeatures:*s
NodeSwapStatus 1:capacity:i
NodeSystemInfo 1:machineID:!s 2:systemUUID:!s 3:bootID:!s 4:kernelVersion:!s 5:osImage:!s
 6:containerRuntimeVersion:!s 7:kubeletVersion:!s 8:kubeProxyVersion:!s 9:operatingSystem:!s
 10:architecture:!s 11:swap:NodeSwapStatus
ObjectFieldSelector 1:apiVersion:s 2:fieldPath:!s
ObjectMeta 1:name:s 2:generateName:s 3:namespace:s 4:selfLink:s 5:uid:s 6:resourceVersion:s
 7:generation:i 8:creationTimestamp:T 9:deletionTimestamp:T 10:deletionGracePeriodSeconds:i
 11:labels:%s 12:annotations:%s 13:ownerReferences:*OwnerReference 14:finalizers:*s
 17:managedFields:*ManagedFieldsEntry
ObjectMetricSource 1:describedObject:!CrossVersionObjectReference 2:target:!MetricTarget
 3:metric:!MetricIdentifier
ObjectMetricStatus 1:metric:!MetricIdentifier 2:current:!MetricValueStatus
 3:describedObject:!CrossVersionObjectReference
ObjectReference 1:kind:s 2:namespace:s 3:name:s 4:uid:s 5:apiVersion:s 6:resourceVersion:s
 7:fieldPath:s
OpaqueDeviceConfiguration 1:driver:!s 2:parameters:R
Overhead 1:podFixed:%Q
OwnerReference 5:apiVersion:!s 1:kind:!s 3:name:!s 4:uid:!s 6:controller:b 7:blockOwnerDeletion:b
ParamKind 1:apiVersion:s 2:kind:s
ParamRef 1:name:s 2:namespace:s 3:selector:LabelSelector 4:parameterNotFoundAction:s
PersistentVolume 1:metadata:!ObjectMeta 2:spec:!PersistentVolumeSpec
 3:status:!PersistentVolumeStatus
PersistentVolumeClaim 1:metadata:!ObjectMeta 2:spec:!PersistentVolumeClaimSpec
 3:status:!PersistentVolumeClaimStatus
PersistentVolumeClaimCondition 1:type:!s 2:status:!s 3:lastProbeTime:T 4:lastTransitionTime:T
 5:reason:s 6:message:s
PersistentVolumeClaimSpec 1:accessModes:*s 4:selector:LabelSelector
 2:resources:!VolumeResourceRequirements 3:volumeName:s 5:storageClassName:s 6:volumeMode:s
 7:dataSource:TypedLocalObjectReference 8:dataSourceRef:TypedObjectReference
 9:volumeAttributesClassName:s
PersistentVolumeClaimStatus 1:phase:s 2:accessModes:*s 3:capacity:%Q
 4:conditions:*PersistentVolumeClaimCondition 5:allocatedResources:%Q 7:allocatedResourceStatuses:%s
 8:currentVolumeAttributesClassName:s 9:modifyVolumeStatus:ModifyVolumeStatus 10:healthStatus:O
PersistentVolumeClaimTemplate 1:metadata:!ObjectMeta 2:spec:!PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource 1:claimName:!s 2:readOnly:b
PersistentVolumeSource 3:hostPath:HostPathVolumeSource 5:nfs:NFSVolumeSource
 7:iscsi:ISCSIPersistentVolumeSource 10:fc:FCVolumeSource 20:local:LocalVolumeSource
 22:csi:CSIPersistentVolumeSource 1:gcePersistentDisk:O 2:awsElasticBlockStore:O 4:glusterfs:O
 6:rbd:O 8:cinder:O 9:cephfs:O 11:flocker:O 12:flexVolume:O 13:azureFile:O 14:vsphereVolume:O
 15:quobyte:O 16:azureDisk:O 17:photonPersistentDisk:O 18:portworxVolume:O 19:scaleIO:O
 21:storageos:O
PersistentVolumeSpec 1:capacity:%Q 2:persistentVolumeSource:^PersistentVolumeSource 3:accessModes:*s
 4:claimRef:ObjectReference 5:persistentVolumeReclaimPolicy:s 6:storageClassName:s 7:mountOptions:*s
 8:volumeMode:s 9:nodeAffinity:VolumeNodeAffinity 10:volumeAttributesClassName:s
PersistentVolumeStatus 1:phase:s 2:message:s 3:reason:s 4:lastPhaseTransitionTime:T
Pod 1:metadata:!ObjectMeta 2:spec:!PodSpec 3:status:!PodStatus
PodAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:*PodAffinityTerm
 2:preferredDuringSchedulingIgnoredDuringExecution:*WeightedPodAffinityTerm
PodAffinityTerm 1:labelSelector:LabelSelector 2:namespaces:*s 3:topologyKey:!s
 4:namespaceSelector:LabelSelector 5:matchLabelKeys:*s 6:mismatchLabelKeys:*s
PodAntiAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:*PodAffinityTerm
 2:preferredDuringSchedulingIgnoredDuringExecution:*WeightedPodAffinityTerm
PodCertificateProjection 1:signerName:s 2:keyType:s 3:maxExpirationSeconds:i
 4:credentialBundlePath:s 5:keyPath:s 6:certificateChainPath:s 7:userAnnotations:%s 8:user:i
PodCondition 1:type:!s 7:observedGeneration:i 2:status:!s 3:lastProbeTime:T 4:lastTransitionTime:T
 5:reason:s 6:message:s
PodDNSConfig 1:nameservers:*s 2:searches:*s 3:options:*PodDNSConfigOption
PodDNSConfigOption 1:name:s 2:value:s
PodDisruptionBudget 1:metadata:!ObjectMeta 2:spec:!PodDisruptionBudgetSpec
 3:status:!PodDisruptionBudgetStatus
PodDisruptionBudgetSpec 1:minAvailable:I 2:selector:LabelSelector 3:maxUnavailable:I
 4:unhealthyPodEvictionPolicy:s
PodDisruptionBudgetStatus 1:observedGeneration:i 2:disruptedPods:%T 3:disruptionsAllowed:!i
 4:currentHealthy:!i 5:desiredHealthy:!i 6:expectedPods:!i 7:conditions:*Condition
PodExtendedResourceClaimStatus 1:requestMappings:*ContainerExtendedResourceRequest
 2:resourceClaimName:!s
PodFailurePolicy 1:rules:*PodFailurePolicyRule
PodFailurePolicyOnExitCodesRequirement 1:containerName:s 2:operator:!s 3:values:*i
PodFailurePolicyOnPodConditionsPattern 1:type:!s 2:status:!s
PodFailurePolicyRule 1:action:!s 2:onExitCodes:PodFailurePolicyOnExitCodesRequirement
 3:onPodConditions:*PodFailurePolicyOnPodConditionsPattern
PodIP 1:ip:!s
PodOS 1:name:!s
PodReadinessGate 1:conditionType:!s
PodResourceClaim 1:name:!s 3:resourceClaimName:s 4:resourceClaimTemplateName:s
PodResourceClaimStatus 1:name:!s 2:resourceClaimName:s
PodSchedulingGate 1:name:!s
PodSecurityContext 1:seLinuxOptions:SELinuxOptions 8:windowsOptions:WindowsSecurityContextOptions
 2:runAsUser:i 6:runAsGroup:i 3:runAsNonRoot:b 4:supplementalGroups:*i 12:supplementalGroupsPolicy:s
 5:fsGroup:i 7:sysctls:*Sysctl 9:fsGroupChangePolicy:s 10:seccompProfile:SeccompProfile
 11:appArmorProfile:AppArmorProfile 13:seLinuxChangePolicy:s
PodSpec 1:volumes:*Volume 20:initContainers:*Container 2:containers:*Container
 34:ephemeralContainers:*EphemeralContainer 3:restartPolicy:s 4:terminationGracePeriodSeconds:i
 5:activeDeadlineSeconds:i 6:dnsPolicy:s 7:nodeSelector:%s 8:serviceAccountName:s 9:serviceAccount:s
 21:automountServiceAccountToken:b 10:nodeName:s 11:hostNetwork:b 12:hostPID:b 13:hostIPC:b
 27:shareProcessNamespace:b 14:securityContext:PodSecurityContext
 15:imagePullSecrets:*LocalObjectReference 16:hostname:s 17:subdomain:s 18:affinity:Affinity
 19:schedulerName:s 22:tolerations:*Toleration 23:hostAliases:*HostAlias 24:priorityClassName:s
 25:priority:i 26:dnsConfig:PodDNSConfig 28:readinessGates:*PodReadinessGate 29:runtimeClassName:s
 30:enableServiceLinks:b 31:preemptionPolicy:s 32:overhead:%Q
 33:topologySpreadConstraints:*TopologySpreadConstraint 35:setHostnameAsFQDN:b 36:os:PodOS
 37:hostUsers:b 38:schedulingGates:*PodSchedulingGate 39:resourceClaims:*PodResourceClaim
 40:resources:ResourceRequirements 41:hostnameOverride:s 42:workloadRef:O 43:schedulingGroup:O
 44:evictionResponders:*O
PodStatus 17:observedGeneration:i 1:phase:s 2:conditions:*PodCondition 3:message:s 4:reason:s
 11:nominatedNodeName:s 5:hostIP:s 16:hostIPs:*HostIP 6:podIP:s 12:podIPs:*PodIP 7:startTime:T
 10:initContainerStatuses:*ContainerStatus 8:containerStatuses:*ContainerStatus 9:qosClass:s
 13:ephemeralContainerStatuses:*ContainerStatus 14:resize:s
 15:resourceClaimStatuses:*PodResourceClaimStatus
 18:extendedResourceClaimStatus:PodExtendedResourceClaimStatus 19:allocatedResources:%Q
 20:resources:ResourceRequirements 21:nodeAllocatableResourceClaimStatuses:*O 22:volumeHealth:*O
PodTemplateSpec 1:metadata:!ObjectMeta 2:spec:!PodSpec
PodsMetricSource 1:metric:!MetricIdentifier 2:target:!MetricTarget
PodsMetricStatus 1:metric:!MetricIdentifier 2:current:!MetricValueStatus
PolicyRule 1:verbs:*s 2:apiGroups:*s 3:resources:*s 4:resourceNames:*s 5:nonResourceURLs:*s
PortStatus 1:port:!i 2:protocol:!s 3:error:s
Preconditions 1:uid:s 2:resourceVersion:s
PreferredSchedulingTerm 1:weight:!i 2:preference:!NodeSelectorTerm
PriorityClass 1:metadata:!ObjectMeta 2:value:!i 3:globalDefault:b 4:description:s
 5:preemptionPolicy:s
Probe 1:handler:^ProbeHandler 2:initialDelaySeconds:i 3:timeoutSeconds:i 4:periodSeconds:i
 5:successThreshold:i 6:failureThreshold:i 7:terminationGracePeriodSeconds:i
ProbeHandler 1:exec:ExecAction 2:httpGet:HTTPGetAction 3:tcpSocket:TCPSocketAction 4:grpc:GRPCAction
ProjectedVolumeSource 1:sources:*VolumeProjection 2:defaultMode:i 3:defaultUser:i
ReplicaSet 1:metadata:!ObjectMeta 2:spec:!ReplicaSetSpec 3:status:!ReplicaSetStatus
ReplicaSetCondition 1:type:!s 2:status:!s 3:lastTransitionTime:T 4:reason:s 5:message:s
ReplicaSetSpec 1:replicas:i 4:minReadySeconds:i 2:selector:LabelSelector 3:template:!PodTemplateSpec
ReplicaSetStatus 1:replicas:!i 2:fullyLabeledReplicas:i 4:readyReplicas:i 5:availableReplicas:i
 7:terminatingReplicas:i 3:observedGeneration:i 6:conditions:*ReplicaSetCondition
ReplicationController 1:metadata:!ObjectMeta 2:spec:!ReplicationControllerSpec
 3:status:!ReplicationControllerStatus
ReplicationControllerCondition 1:type:!s 2:status:!s 3:lastTransitionTime:T 4:reason:s 5:message:s
ReplicationControllerSpec 1:replicas:i 4:minReadySeconds:i 2:selector:%s 3:template:PodTemplateSpec
ReplicationControllerStatus 1:replicas:!i 2:fullyLabeledReplicas:i 4:readyReplicas:i
 5:availableReplicas:i 3:observedGeneration:i 6:conditions:*ReplicationControllerCondition
ResourceClaim 1:metadata:!ObjectMeta 2:spec:!ResourceClaimSpec 3:status:!ResourceClaimStatus
ResourceClaimConsumerReference 1:apiGroup:s 3:resource:!s 4:name:!s 5:uid:!s
ResourceClaimSpec 1:devices:!DeviceClaim
ResourceClaimStatus 1:allocation:AllocationResult 2:reservedFor:*ResourceClaimConsumerReference
 4:devices:*AllocatedDeviceStatus
ResourceClaimTemplate 1:metadata:!ObjectMeta 2:spec:!ResourceClaimTemplateSpec
ResourceClaimTemplateSpec 1:metadata:!ObjectMeta 2:spec:!ResourceClaimSpec
ResourceFieldSelector 1:containerName:s 2:resource:!s 3:divisor:Q
ResourceHealth 1:resourceID:!s 2:health:s 6:message:s
ResourceMetricSource 1:name:!s 2:target:!MetricTarget
ResourceMetricStatus 1:name:!s 2:current:!MetricValueStatus
ResourcePool 1:name:!s 2:generation:!i 3:resourceSliceCount:!i
ResourceQuota 1:metadata:!ObjectMeta 2:spec:!ResourceQuotaSpec 3:status:!ResourceQuotaStatus
ResourceQuotaSpec 1:hard:%Q 2:scopes:*s 3:scopeSelector:ScopeSelector
ResourceQuotaStatus 1:hard:%Q 2:used:%Q
ResourceRequirements 1:limits:%Q 2:requests:%Q 3:claims:*ContainerResourceClaim
ResourceSlice 1:metadata:!ObjectMeta 2:spec:!ResourceSliceSpec
ResourceSliceSpec 1:driver:!s 2:pool:!ResourcePool 3:nodeName:s 4:nodeSelector:NodeSelector
 5:allNodes:b 6:devices:*Device 7:perDeviceNodeSelection:b 8:sharedCounters:*CounterSet
 9:partitionTypeAttribute:s 10:skipNodeOperations:*s
ResourceStatus 1:name:!s 2:resources:*ResourceHealth
Role 1:metadata:!ObjectMeta 2:rules:*PolicyRule
RoleBinding 1:metadata:!ObjectMeta 2:subjects:*Subject 3:roleRef:!RoleRef
RoleRef 1:apiGroup:!s 2:kind:!s 3:name:!s
RollingUpdateDaemonSet 1:maxUnavailable:I 2:maxSurge:I
RollingUpdateDeployment 1:maxUnavailable:I 2:maxSurge:I
RollingUpdateStatefulSetStrategy 1:partition:i 2:maxUnavailable:I
Rule 1:apiGroups:*s 2:apiVersions:*s 3:resources:*s 4:scope:s
RuleWithOperations 1:operations:*s 2:rule:^Rule
RuntimeClass 1:metadata:!ObjectMeta 2:handler:!s 3:overhead:Overhead 4:scheduling:Scheduling
SELinuxOptions 1:user:s 2:role:s 3:type:s 4:level:s
Scale 1:metadata:!ObjectMeta 2:spec:!ScaleSpec 3:status:!ScaleStatus
ScaleSpec 1:replicas:i
ScaleStatus 1:replicas:!i 2:selector:s
Scheduling 1:nodeSelector:%s 2:tolerations:*Toleration
ScopeSelector 1:matchExpressions:*ScopedResourceSelectorRequirement
ScopedResourceSelectorRequirement 1:scopeName:!s 2:operator:!s 3:values:*s
SeccompProfile 1:type:!s 2:localhostProfile:s
Secret 1:metadata:!ObjectMeta 5:immutable:b 2:data:%y 4:stringData:%s 3:type:s
SecretEnvSource 1:localObjectReference:^LocalObjectReference 2:optional:b
SecretKeySelector 1:localObjectReference:^LocalObjectReference 2:key:!s 3:optional:b
SecretProjection 1:localObjectReference:^LocalObjectReference 2:items:*KeyToPath 4:optional:b
SecretReference 1:name:s 2:namespace:s
SecretVolumeSource 1:secretName:s 2:items:*KeyToPath 3:defaultMode:i 4:optional:b 5:defaultUser:i
SecurityContext 1:capabilities:Capabilities 2:privileged:b 3:seLinuxOptions:SELinuxOptions
 10:windowsOptions:WindowsSecurityContextOptions 4:runAsUser:i 8:runAsGroup:i 5:runAsNonRoot:b
 6:readOnlyRootFilesystem:b 7:allowPrivilegeEscalation:b 9:procMount:s
 11:seccompProfile:SeccompProfile 12:appArmorProfile:AppArmorProfile
SelectableField 1:jsonPath:!s
Service 1:metadata:!ObjectMeta 2:spec:!ServiceSpec 3:status:!ServiceStatus
ServiceAccount 1:metadata:!ObjectMeta 2:secrets:*ObjectReference
 3:imagePullSecrets:*LocalObjectReference 4:automountServiceAccountToken:b
ServiceAccountTokenProjection 1:audience:s 2:expirationSeconds:i 3:path:!s 4:user:i
ServiceBackendPort 1:name:s 2:number:i
ServicePort 1:name:s 2:protocol:s 6:appProtocol:s 3:port:!i 4:targetPort:I 5:nodePort:i
ServiceReference 1:namespace:!s 2:name:!s 3:path:s 4:port:i
ServiceSpec 1:ports:*ServicePort 2:selector:%s 3:clusterIP:s 18:clusterIPs:*s 4:type:s
 5:externalIPs:*s 7:sessionAffinity:s 8:loadBalancerIP:s 9:loadBalancerSourceRanges:*s
 10:externalName:s 11:externalTrafficPolicy:s 12:healthCheckNodePort:i 13:publishNotReadyAddresses:b
 14:sessionAffinityConfig:SessionAffinityConfig 19:ipFamilies:*s 17:ipFamilyPolicy:s
 20:allocateLoadBalancerNodePorts:b 21:loadBalancerClass:s 22:internalTrafficPolicy:s
 23:trafficDistribution:s
ServiceStatus 1:loadBalancer:!LoadBalancerStatus 2:conditions:*Condition
SessionAffinityConfig 1:clientIP:ClientIPConfig
SleepAction 1:seconds:!i
StatefulSet 1:metadata:!ObjectMeta 2:spec:!StatefulSetSpec 3:status:!StatefulSetStatus
StatefulSetCondition 1:type:!s 2:status:!s 3:lastTransitionTime:T 4:reason:s 5:message:s
StatefulSetOrdinals 1:start:!i
StatefulSetPersistentVolumeClaimRetentionPolicy 1:whenDeleted:s 2:whenScaled:s
StatefulSetSpec 1:replicas:i 2:selector:LabelSelector 3:template:!PodTemplateSpec
 4:volumeClaimTemplates:*PersistentVolumeClaim 5:serviceName:!s 6:podManagementPolicy:s
 7:updateStrategy:!StatefulSetUpdateStrategy 8:revisionHistoryLimit:i 9:minReadySeconds:i
 10:persistentVolumeClaimRetentionPolicy:StatefulSetPersistentVolumeClaimRetentionPolicy
 11:ordinals:StatefulSetOrdinals
StatefulSetStatus 1:observedGeneration:i 2:replicas:!i 3:readyReplicas:i 4:currentReplicas:i
 5:updatedReplicas:i 6:currentRevision:s 7:updateRevision:s 9:collisionCount:i
 10:conditions:*StatefulSetCondition 11:availableReplicas:!i
StatefulSetUpdateStrategy 1:type:s 2:rollingUpdate:RollingUpdateStatefulSetStrategy
StorageClass 1:metadata:!ObjectMeta 2:provisioner:!s 3:parameters:%s 4:reclaimPolicy:s
 5:mountOptions:*s 6:allowVolumeExpansion:b 7:volumeBindingMode:s
 8:allowedTopologies:*TopologySelectorTerm
Subject 1:kind:!s 2:apiGroup:s 3:name:!s 4:namespace:s
SuccessPolicy 1:rules:*SuccessPolicyRule
SuccessPolicyRule 1:succeededIndexes:s 2:succeededCount:i
Sysctl 1:name:!s 2:value:!s
TCPSocketAction 1:port:I 2:host:s
Taint 1:key:!s 2:value:s 3:effect:!s 4:timeAdded:T
TokenRequest 1:audience:!s 2:expirationSeconds:i
Toleration 1:key:s 2:operator:s 3:value:s 4:effect:s 5:tolerationSeconds:i
TopologySelectorLabelRequirement 1:key:!s 2:values:*s
TopologySelectorTerm 1:matchLabelExpressions:*TopologySelectorLabelRequirement
TopologySpreadConstraint 1:maxSkew:!i 2:topologyKey:!s 3:whenUnsatisfiable:!s
 4:labelSelector:LabelSelector 5:minDomains:i 6:nodeAffinityPolicy:s 7:nodeTaintsPolicy:s
 8:matchLabelKeys:*s
TypeChecking 1:expressionWarnings:*ExpressionWarning
TypedLocalObjectReference 1:apiGroup:s 2:kind:!s 3:name:!s
TypedObjectReference 1:apiGroup:s 2:kind:!s 3:name:!s 4:namespace:s
UncountedTerminatedPods 1:succeeded:*s 2:failed:*s
ValidatingAdmissionPolicy 1:metadata:!ObjectMeta 2:spec:!ValidatingAdmissionPolicySpec
 3:status:!ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicyBinding 1:metadata:!ObjectMeta 2:spec:!ValidatingAdmissionPolicyBindingSpec
ValidatingAdmissionPolicyBindingSpec 1:policyName:s 2:paramRef:ParamRef
 3:matchResources:MatchResources 4:validationActions:*s
ValidatingAdmissionPolicySpec 1:paramKind:ParamKind 2:matchConstraints:MatchResources
 3:validations:*Validation 4:failurePolicy:s 5:auditAnnotations:*AuditAnnotation
 6:matchConditions:*MatchCondition 7:variables:*Variable
ValidatingAdmissionPolicyStatus 1:observedGeneration:i 2:typeChecking:TypeChecking
 3:conditions:*Condition
ValidatingWebhook 1:name:!s 2:clientConfig:!WebhookClientConfig 3:rules:*RuleWithOperations
 4:failurePolicy:s 9:matchPolicy:s 5:namespaceSelector:LabelSelector 10:objectSelector:LabelSelector
 6:sideEffects:s 7:timeoutSeconds:i 8:admissionReviewVersions:*s 11:matchConditions:*MatchCondition
ValidatingWebhookConfiguration 1:metadata:!ObjectMeta 2:webhooks:*ValidatingWebhook
Validation 1:expression:!s 2:message:s 3:reason:s 4:messageExpression:s
Variable 1:name:!s 2:expression:!s
Volume 1:name:!s 2:volumeSource:^VolumeSource
VolumeAttachment 1:metadata:!ObjectMeta 2:spec:!VolumeAttachmentSpec
 3:status:!VolumeAttachmentStatus
VolumeAttachmentSource 1:persistentVolumeName:s 2:inlineVolumeSpec:PersistentVolumeSpec
VolumeAttachmentSpec 1:attacher:!s 2:source:!VolumeAttachmentSource 3:nodeName:!s
VolumeAttachmentStatus 1:attached:!b 2:attachmentMetadata:%s 3:attachError:VolumeError
 4:detachError:VolumeError
VolumeDevice 1:name:!s 2:devicePath:!s
VolumeError 1:time:T 2:message:s 3:errorCode:i
VolumeMount 1:name:!s 2:readOnly:b 7:recursiveReadOnly:s 3:mountPath:!s 4:subPath:s
 5:mountPropagation:s 6:subPathExpr:s 8:bindMountOptions:*s
VolumeMountStatus 1:name:!s 2:mountPath:!s 3:readOnly:b 4:recursiveReadOnly:s 5:volumeStatus:O
VolumeNodeAffinity 1:required:NodeSelector
VolumeNodeResources 1:count:i
VolumeProjection 1:secret:SecretProjection 2:downwardAPI:DownwardAPIProjection
 3:configMap:ConfigMapProjection 4:serviceAccountToken:ServiceAccountTokenProjection
 5:clusterTrustBundle:ClusterTrustBundleProjection 6:podCertificate:PodCertificateProjection
VolumeResourceRequirements 1:limits:%Q 2:requests:%Q
VolumeSource 1:hostPath:HostPathVolumeSource 2:emptyDir:EmptyDirVolumeSource
 6:secret:SecretVolumeSource 7:nfs:NFSVolumeSource
 10:persistentVolumeClaim:PersistentVolumeClaimVolumeSource 16:downwardAPI:DownwardAPIVolumeSource
 19:configMap:ConfigMapVolumeSource 26:projected:ProjectedVolumeSource 28:csi:CSIVolumeSource
 29:ephemeral:EphemeralVolumeSource 30:image:ImageVolumeSource 3:gcePersistentDisk:O
 4:awsElasticBlockStore:O 5:gitRepo:O 8:iscsi:O 9:glusterfs:O 11:rbd:O 12:flexVolume:O 13:cinder:O
 14:cephfs:O 15:flocker:O 17:fc:O 18:azureFile:O 20:vsphereVolume:O 21:quobyte:O 22:azureDisk:O
 23:photonPersistentDisk:O 24:portworxVolume:O 25:scaleIO:O 27:storageos:O
WebhookClientConfig 3:url:s 1:service:ServiceReference 2:caBundle:y
WebhookConversion 2:clientConfig:WebhookClientConfig 3:conversionReviewVersions:*s
WeightedPodAffinityTerm 1:weight:!i 2:podAffinityTerm:!PodAffinityTerm
WindowsSecurityContextOptions 1:gmsaCredentialSpecName:s 2:gmsaCredentialSpec:s 3:runAsUserName:s
 4:hostProcess:b
)";

}  // namespace nos::sim
