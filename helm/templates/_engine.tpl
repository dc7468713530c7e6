{{/*
The pod template of an engine.
(dict "root" $ "plan" $plan "role" "prefill" "engine" (the plan's) "values" (the role's) "worker" false)
A worker is another machine of an instance that spans several: it serves no HTTP, and the proxy does not see it.
*/}}
{{- define "duet.enginePod" -}}
{{- $root := .root }}{{ $engine := .engine }}{{ $values := .values -}}
metadata:
  labels:
    {{- include "duet.podLabels" (dict "root" $root "component" .role) | nindent 4 }}
    duet/revision: {{ include "duet.revision" $root | quote }}
    {{- if not .worker }}
    duet/role: {{ .role }}
    {{- end }}
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    duet/facts: {{ $engine.facts | default dict | toJson | quote }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- $spec := include "duet.engineSpec" . | fromYaml }}
  {{- $container := mustMergeOverwrite (include "duet.engineContainer" . | fromYaml) (deepCopy $values.extraContainerSpec) }}
  {{- $_ := set $spec "containers" (list $container) }}
  {{- toYaml (mustMergeOverwrite $spec (deepCopy $values.extraPodSpec)) | nindent 2 }}
{{- end -}}

{{- define "duet.engineSpec" -}}
{{- $root := .root }}{{ $plan := .plan }}{{ $engine := .engine }}{{ $values := .values -}}
enableServiceLinks: false
automountServiceAccountToken: false
terminationGracePeriodSeconds: {{ $engine.terminationGracePeriodSeconds }}
securityContext:
  {{- toYaml $values.podSecurityContext | nindent 2 }}
{{- if $values.hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- if $values.hostIPC }}
hostIPC: true
{{- end }}
{{- include "duet.placement" . }}
{{- if or $values.affinity $values.nearPeers.enabled }}
affinity:
  {{- with $values.affinity }}
  {{- tpl (toYaml .) $root | nindent 2 }}
  {{- else }}
  podAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: {{ $values.nearPeers.topologyKey }}
          labelSelector:
            matchLabels:
              app.kubernetes.io/name: duet
              app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
            matchExpressions:
              - {key: duet/role, operator: NotIn, values: [{{ .role }}]}
              - {key: duet/role, operator: Exists}
  {{- end }}
{{- end }}
volumes:
  - name: hooks
    configMap:
      name: {{ include "duet.fullname" $root }}-hooks
  - name: scratch
    emptyDir:
      {{- with $values.scratchSize }}
      sizeLimit: {{ . }}
      {{- else }} {}
      {{- end }}
  - name: tmp
    emptyDir: {}
  - name: shm
    emptyDir:
      medium: Memory
      sizeLimit: {{ $values.shmSize }}
  - {{- include "duet.cacheVolume" $root | nindent 4 }}
  {{- with $root.Values.model.volume }}
  - name: model
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $plan.sharedFolder }}
  - name: shared-folder
    persistentVolumeClaim:
      claimName: {{ required (printf "sharedFolder.existingClaim: the connector %s moves KV by files: name a PersistentVolumeClaim (ReadWriteMany) that prefill and decode share" $plan.connector) $root.Values.sharedFolder.existingClaim }}
  {{- end }}
  {{- with $values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "duet.engineContainer" -}}
{{- $root := .root }}{{ $plan := .plan }}{{ $engine := .engine }}{{ $values := .values -}}
name: engine
image: {{ include "duet.image" $values.image | quote }}
imagePullPolicy: {{ $values.image.pullPolicy }}
command:
  {{- toYaml $engine.command | nindent 2 }}
args:
  {{- if .worker }}
  {{- toYaml ($engine.workerArgs | default $engine.args) | nindent 2 }}
  {{- else }}
  {{- toYaml $engine.args | nindent 2 }}
  {{- end }}
  {{- with $values.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
env:
  {{- include "duet.engineEnv" . | nindent 2 }}
{{- if not .worker }}
ports:
  - name: http
    containerPort: {{ $engine.port }}
    protocol: TCP
  {{- with $engine.sideChannel }}
  {{- range $index := until (int .count) }}
  - name: side-channel{{ if $index }}-{{ $index }}{{ end }}
    containerPort: {{ add (int $engine.sideChannel.port) $index }}
    protocol: TCP
  {{- end }}
  {{- end }}
startupProbe:
  httpGet: {path: /health, port: http}
  periodSeconds: {{ $engine.startup.periodSeconds }}
  failureThreshold: {{ $engine.startup.failureThreshold }}
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /health, port: http}
  periodSeconds: 5
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /health, port: http}
  periodSeconds: 30
  timeoutSeconds: 10
  failureThreshold: 6
lifecycle:
  preStop:
    exec:
      command: [{{ $values.python | quote }}, -I, /duet/hooks/drain.py, --port, {{ $engine.port | quote }}, --within, {{ $engine.drainSeconds | quote }}, --role, {{ .role }}]
{{- end }}
resources:
  {{- $resources := deepCopy $values.resources }}
  {{- $limits := $resources.limits | default dict }}
  {{- $requests := $resources.requests | default dict }}
  {{- with $engine.devices }}
  {{- $_ := set $limits .resource (.count | toString) }}
  {{- end }}
  {{- if $values.rdma.enabled }}
  {{- $_ := set $limits $values.rdma.resource ($values.rdma.count | toString) }}
  {{- end }}
  {{- if and $engine.cores (not (hasKey $requests "cpu")) }}
  {{- $_ := set $requests "cpu" ($engine.cores | toString) }}
  {{- end }}
  {{- toYaml (merge (dict "limits" $limits "requests" $requests) $resources) | nindent 2 }}
securityContext:
  {{- $security := deepCopy $values.containerSecurityContext }}
  {{- if $values.rdma.enabled }}
  {{- $security = mustMergeOverwrite $security (dict "capabilities" (dict "add" (list "IPC_LOCK"))) }}
  {{- end }}
  {{- toYaml $security | nindent 2 }}
volumeMounts:
  - {name: hooks, mountPath: /duet/hooks, readOnly: true}
  - {name: scratch, mountPath: /scratch}
  - {name: tmp, mountPath: /tmp}
  - {name: shm, mountPath: /dev/shm}
  - {name: cache, mountPath: {{ $root.Values.modelCache.mountPath }}}
  {{- if $root.Values.model.volume }}
  - {name: model, mountPath: {{ $root.Values.model.mountPath | default $plan.model.name }}, readOnly: true}
  {{- end }}
  {{- with $plan.sharedFolder }}
  - {name: shared-folder, mountPath: {{ . }}}
  {{- end }}
  {{- with $values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/*
The environment. POD_IP comes first, since others refer to it; a name occurs once, what is nearest to the user wins:
extraEnv, then the plan, then places that can be written to.
*/}}
{{- define "duet.engineEnv" -}}
{{- $extra := dict }}
{{- range .values.extraEnv }}{{ $_ := set $extra .name true }}{{ end -}}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
{{- $scratch := dict "HOME" "/scratch" "USER" "duet" "LOGNAME" "duet" "XDG_CACHE_HOME" "/scratch/cache" "XDG_CONFIG_HOME" "/scratch/config" "TRITON_CACHE_DIR" "/scratch/triton" "TORCHINDUCTOR_CACHE_DIR" "/scratch/inductor" "VLLM_CACHE_ROOT" "/scratch/vllm" "CUDA_CACHE_PATH" "/scratch/cuda" "FLASHINFER_WORKSPACE_BASE" "/scratch" "NUMBA_CACHE_DIR" "/scratch/numba" "HF_HOME" (printf "%s/huggingface" .root.Values.modelCache.mountPath) }}
{{- range $name, $text := mustMergeOverwrite $scratch (.engine.env | default dict) }}
{{- if not (hasKey $extra $name) }}
- name: {{ $name }}
  value: {{ $text | quote }}
{{- end }}
{{- end }}
{{- $secrets := .engine.secrets | default list }}
{{- if and .root.Values.huggingFace.existingSecret (not (hasKey $extra "HF_TOKEN")) }}
{{- $secrets = without $secrets "HF_TOKEN" }}
{{ include "duet.huggingFaceToken" .root }}
{{- end }}
{{- range $name := $secrets }}
{{- if not (hasKey $extra $name) }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ required (printf "existingSecret: the engines need %s: name a Secret of this namespace that has it by this key" $name) $.root.Values.existingSecret }}
      key: {{ $name }}
{{- end }}
{{- end }}
{{- with .values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
