{{/* The plan: the one given, else the shipped one of this name. */}}
{{- define "duet.plan" -}}
{{- if .Values.plan -}}
{{- toYaml .Values.plan -}}
{{- else -}}
{{- $names := list -}}
{{- range $path, $_ := .Files.Glob "files/plans/*.yaml" -}}
{{- $names = append $names (base $path | trimSuffix ".yaml") -}}
{{- end -}}
{{- if not .Values.profile -}}
{{- fail (printf "nothing to serve: give --set profile=NAME (%s), or -f values.yaml with what `launcher render PROFILE` prints" (join ", " $names)) -}}
{{- end -}}
{{- if not (has .Values.profile $names) -}}
{{- fail (printf "profile: there is no %q in this chart; there are %s; for a profile of your own give -f values.yaml with what `launcher render PROFILE` prints" .Values.profile (join ", " $names)) -}}
{{- end -}}
{{- toYaml (.Files.Get (printf "files/plans/%s.yaml" .Values.profile) | fromYaml).plan -}}
{{- end -}}
{{- end -}}

{{/* How names of objects begin. With what is appended, the whole name of a pod has at most 63 characters. */}}
{{- define "duet.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | replace "." "-" | trunc 35 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels that never change. (dict "root" $ "component" "proxy") */}}
{{- define "duet.selector" -}}
app.kubernetes.io/name: duet
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of pods: nothing that changes with the chart's version, which would start engines anew. */}}
{{- define "duet.podLabels" -}}
{{ include "duet.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "duet.labels" -}}
{{ include "duet.podLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* name, namespace and labels of an object. (dict "root" $ "component" "proxy" "name" "-proxy") */}}
{{- define "duet.metadata" -}}
name: {{ include "duet.fullname" .root }}{{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "duet.labels" . | nindent 2 }}
{{- end -}}

{{- define "duet.image" -}}
{{ .repository }}{{ with .tag }}:{{ . }}{{ end }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}

{{/* The values of a role: those of all engines, overridden by its own. (dict "root" $ "role" "prefill" "device" "cuda") */}}
{{- define "duet.role" -}}
{{- $values := mustMergeOverwrite (deepCopy .root.Values.engine) (index .root.Values .role) -}}
{{- if not $values.image.repository -}}
{{- $_ := set $values.image "repository" (index $values.image.byDevice .device) -}}
{{- end -}}
{{- toYaml $values -}}
{{- end -}}

{{/* A hash over all that prefill and decode have to agree upon: pods of two revisions are no pair. */}}
{{- define "duet.revision" -}}
{{- $root := . -}}
{{- $plan := include "duet.plan" . | fromYaml -}}
{{- $all := dict "python" "" -}}
{{- range $role, $engine := $plan.engines -}}
{{- $values := include "duet.role" (dict "root" $root "role" $role "device" $plan.device) | fromYaml -}}
{{- $_ := set $all $role (list (pick $engine "command" "args" "workerArgs" "env") (pick $values "image" "extraEnv" "extraArgs" "extraContainerSpec")) -}}
{{- end -}}
{{- toJson $all | sha256sum | trunc 10 -}}
{{- end -}}

{{/* The name of the ServiceAccount of the proxy. */}}
{{- define "duet.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (printf "%s-proxy" (include "duet.fullname" .)) -}}
{{- end -}}

{{/* Prometheus' name of the deployment: alert rules know it by "duet". */}}
{{- define "duet.job" -}}
{{- .Values.monitoring.job | default (printf "duet-%s" .Release.Name) -}}
{{- end -}}

{{/* Volume of the model cache. */}}
{{- define "duet.cacheVolume" -}}
{{- $cache := .Values.modelCache -}}
name: cache
{{- if eq $cache.kind "emptyDir" }}
emptyDir:
  {{- with $cache.sizeLimit }}
  sizeLimit: {{ . }}
  {{- else }} {}
  {{- end }}
{{- else if eq $cache.kind "hostPath" }}
hostPath:
  path: {{ required "modelCache.hostPath: which folder of the nodes holds the models?" $cache.hostPath }}
  type: DirectoryOrCreate
{{- else if eq $cache.kind "pvc" }}
persistentVolumeClaim:
  claimName: {{ include "duet.fullname" . }}-cache
{{- else }}
persistentVolumeClaim:
  claimName: {{ required "modelCache.existingClaim: which PersistentVolumeClaim holds the models?" $cache.existingClaim }}
{{- end }}
{{- end -}}

{{/* The token of the Hugging Face hub, from its Secret. */}}
{{- define "duet.huggingFaceToken" -}}
{{- with .Values.huggingFace.existingSecret -}}
- name: HF_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.Values.huggingFace.key }}
{{- end -}}
{{- end -}}

{{/* What one pod of a scheduler's choice says, from the values of a role or of the proxy. */}}
{{- define "duet.placement" -}}
{{- range $key := list "nodeSelector" "tolerations" "topologySpreadConstraints" }}
{{- with index $.values $key }}
{{ $key }}:
  {{- tpl (toYaml .) $.root | nindent 2 }}
{{- end }}
{{- end }}
{{- range $key := list "priorityClassName" "runtimeClassName" "schedulerName" }}
{{- with index $.values $key }}
{{ $key }}: {{ . }}
{{- end }}
{{- end }}
{{- with $.root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The pods of all engines, as peers of a NetworkPolicy. */}}
{{- define "duet.engines" -}}
{{- $root := .root -}}
{{- range $role, $_ := .plan.engines }}
- podSelector:
    matchLabels:
      {{- include "duet.selector" (dict "root" $root "component" $role) | nindent 6 }}
{{- end }}
{{- end -}}
