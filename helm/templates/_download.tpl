{{/* The pod template that fetches the model into the cache. (dict "root" $ "plan" $plan) */}}
{{- define "duet.downloadPod" -}}
{{- $root := .root }}{{ $model := .plan.model -}}
{{- $engine := include "duet.role" (dict "root" $root "role" (keys .plan.engines | sortAlpha | first) "device" .plan.device) | fromYaml -}}
{{- $download := $root.Values.download -}}
metadata:
  labels:
    {{- include "duet.podLabels" (dict "root" $root "component" "download") | nindent 4 }}
spec:
  restartPolicy: OnFailure
  enableServiceLinks: false
  automountServiceAccountToken: false
  securityContext:
    {{- toYaml $engine.podSecurityContext | nindent 4 }}
  {{- include "duet.placement" (dict "root" $root "values" $download) | nindent 2 }}
  volumes:
    - {{- include "duet.cacheVolume" $root | nindent 6 }}
    - name: tmp
      emptyDir: {}
    {{- with $engine.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  containers:
    - name: download
      image: {{ include "duet.image" $engine.image | quote }}
      imagePullPolicy: {{ $engine.image.pullPolicy }}
      command:
        - hf
        - download
        - {{ $model.name | quote }}
        {{- with $model.revision }}
        - --revision={{ . }}
        {{- end }}
        {{- with $download.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      env:
        - name: HOME
          value: /tmp
        - name: HF_HOME
          value: {{ $root.Values.modelCache.mountPath }}/huggingface
        {{- with include "duet.huggingFaceToken" $root }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with $download.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      resources:
        {{- toYaml $download.resources | nindent 8 }}
      securityContext:
        {{- toYaml $engine.containerSecurityContext | nindent 8 }}
      volumeMounts:
        - {name: cache, mountPath: {{ $root.Values.modelCache.mountPath }}}
        - {name: tmp, mountPath: /tmp}
        {{- with $engine.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end -}}
