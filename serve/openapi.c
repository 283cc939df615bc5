/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the OpenAPI description of the interface from the tables of routes and fields. */

#include <string.h>

#include "serve/interfaces/fields.h"
#include "serve/interfaces/json_shape.h"
#include "serve/interfaces/ollama.h"
#include "serve/server_internal.h"

/* ---- shapes that have names ------------------------------------------------------------------ */

#define SAMPLING                                                                                   \
    "seed:i,max_tokens:i,temperature:n,top_p:n,top_k:i,min_p:n,presence_penalty:n,"                \
    "frequency_penalty:n,repeat_last_n:i,ignore_eos:b"
#define STOPPED "stop_reason?:s|i,matched_stop?:s|i"
#define TOKEN "token:s,id:i,logprob:n,bytes:[i]"
#define PACE(name) name "_n:i," name "_ms:n," name "_per_token_ms:n," name "_per_second:n"
#define REASON "message:s,type:s,param:s|~"
#define DONE                                                                                       \
    "done:b,done_reason:\"stop\"|\"length\",total_duration:i,load_duration:i,prompt_eval_count:i," \
    "prompt_eval_duration:i,eval_count:i,eval_duration:i,logprobs?:[@token],tern:@tern"
#define VECTORS_TERN                                                                               \
    "tern:{system_fingerprint:s,digest:[s],effective:{pooling:s,dimensions:i},ignored:[s]}"
#define VECTORS "total_duration:i,load_duration:i,prompt_eval_count:i," VECTORS_TERN
#define LENGTHS "n_prompt_tokens?:i,n_ctx?:i"

static const struct {
    const char *name, *shape;
} parts[] = {
    {"effective", "{" SAMPLING ",repetition_penalty:n,n:i}"},
    {"settings", "{" SAMPLING ",repeat_penalty:n,n_predict:i,n_probs:i,stream:b,cache_prompt:b,"
                 "stop:[s],logit_bias:[{token:i,bias:n}]}"},
    {"tern", "{system_fingerprint:s,digest:[s],effective:@effective,ignored:[s],schema_notes?:[s],"
             "schema_failed?:[s],unseen?:s,"
             "receipt?:{*:*}}"},
    {"token", "{" TOKEN ",top_logprobs:[{" TOKEN "}]}"},
    {"call", "{id:s,type:\"function\",function:{name:s,arguments:s}}"},
    {"block", "{type:s,text:s}|{type:\"thinking\",thinking:s,signature:s}|{type:\"tool_use\",id:s,"
              "name:s,input:{*:*}}|{type:\"tool_result\","
              "tool_use_id:s,content?:s|[{type:s,text:s}]}"},
    {"timings",
     "{cache_n:i," PACE("prompt") "," PACE("predicted") ",draft_n?:i,draft_n_accepted?:i}"},
    {"usage", "{prompt_tokens:i,completion_tokens:i,total_tokens:i,prompt_tokens_details:"
              "{cached_tokens:i},completion_tokens_details?:{reasoning_tokens:i}}"},
    {"chat_completion",
     "{id:s,object:\"chat.completion\",created:i,model:s,system_fingerprint:s,choices:[{index:i,"
     "message:{role:\"assistant\",content:s|~,reasoning_content?:s,refusal:~,tool_calls?:[@call]},"
     "logprobs:~|{content:["
     "@token],refusal:~},finish_reason:\"stop\"|\"length\"|\"tool_calls\"," STOPPED
     "}],usage:@usage,timings?:@"
     "timings,"
     "tern:@tern}"},
    {"text_completion",
     "{id:s,object:\"text_completion\",created:i,model:s,system_fingerprint:s,choices:[{index:i,"
     "text:s,logprobs:~|{tokens:[s],token_logprobs:[n|~],top_logprobs:[{*:n}|~],text_offset:[i]},"
     "finish_reason:\"stop\"|\"length\"," STOPPED "}],usage:@usage,timings?:@timings,tern:@tern}"},
    {"completion",
     "{index:i,content:s,tokens:[i],id_slot:i,stop:b,tokens_predicted:i,tokens_evaluated:i,"
     "completion_probabilities?:[@token],model:s,prompt:s,generation_settings:@settings,"
     "has_new_line:b,truncated:b,stop_type:\"eos\"|\"word\"|\"limit\",stopping_word:s,"
     "tokens_cached:i,timings:@timings,tern:@tern}"},
    {"response",
     "{id:s,object:\"response\",created_at:i,status:\"completed\"|\"incomplete\",error:~,"
     "incomplete_details:~|{reason:s},model:s,output:[{type:\"message\",role:\"assistant\",id:s,"
     "status:s,content:[{type:\"output_text\",text:s,annotations:[*],logprobs:[@token]}]}|{type:"
     "\"reasoning\",id:s,status:s,summary:[*],content:[{type:\"reasoning_text\",text:s}]}|{type:"
     "\"function_call\",id:s,call_id:s,name:s,arguments:s,status:s}],"
     "instructions:s|~,max_output_tokens:i|~,metadata:{*:*},temperature:n,top_p:n,top_logprobs:i,"
     "parallel_tool_calls:b,tool_choice:s|{*:*},tools:[*],previous_response_id:s|~,store:b,"
     "background:b,"
     "truncation:s,text:{format?:{*:*}},usage:{input_tokens:i,input_tokens_details:{"
     "cached_tokens:i},output_tokens:i,output_tokens_details:{reasoning_tokens:i},total_tokens:i},"
     "timings?:@timings,tern:@tern}"},
    {"message",
     "{id:s,type:\"message\",role:\"assistant\",model:s,content:[@block],"
     "stop_reason:\"end_turn\"|\"max_tokens\"|\"stop_sequence\"|\"tool_use\",stop_sequence:s|~,"
     "usage:{"
     "input_tokens:i,cache_creation_input_tokens:i,cache_read_input_tokens:i,output_tokens:i},"
     "tern:@tern}"},
    {"embeddings",
     "{object:\"list\",data:[{object:\"embedding\",index:i,embedding:[n]|s}],model:s,usage:{"
     "prompt_tokens:i,total_tokens:i}," VECTORS_TERN "}"},
    {"ranked", "{object:\"list\",results:[{index:i,relevance_score:n,document?:{text:s}}],model:s,"
               "usage:{prompt_tokens:i,total_tokens:i}," VECTORS_TERN "}"},
    {"ranked_text", "{index:i,score:n,text?:s}"},
    {"model", "{id:s,object:\"model\",created:i,owned_by:s,root:s,max_model_len?:i,meta:{n_ctx?:i,"
              "n_ctx_train?:i,n_vocab?:i,n_embd?:i,n_params?:i,memory?:i,shared_memory?:i,size:i},"
              "status:{value:s,error?:s}}"},
    {"slot", "{id:i,n_ctx:i,speculative:b,is_processing:b,id_task?:i,n_prompt_tokens?:i,"
             "params?:@settings,next_token?:{has_next_token:b,has_new_line:b,n_remain:i,"
             "n_decoded:i},model?:s}"},
    {"ollama_chat",
     "{model:s,created_at:s,message:{role:\"assistant\",content:s,thinking?:s,tool_calls?:[{id:s,"
     "function:{index:i,name:s,arguments:{*:*}}}]}," DONE "}"},
    {"ollama_text", "{model:s,created_at:s,response:s,thinking?:s,context?:[i]," DONE "}"},
    {"ollama_loaded",
     "{model:s,created_at:s,message?:{role:s,content:s},response?:s,done:b,done_reason:\"load\"}"},
    {"ollama_vectors", "{model:s,created_at:s,embeddings:[[n]]," VECTORS "}"},
    {"ollama_vector", "{model:s,created_at:s,embedding:[n]," VECTORS "}"},
    {"ollama_details", "{parent_model:s,format:s,family:s,families:[s],parameter_size:s,"
                       "quantization_level:s,context_length:i,embedding_length:i}"},
    {"ollama_model", "{name:s,model:s,size:i,digest:s,details:@ollama_details,modified_at?:s,"
                     "expires_at?:s,size_vram?:i,context_length?:i}"},
    {"ollama_shown",
     "{modelfile:s,parameters:s,template:s,details:@ollama_details,model_info:{*:*},"
     "capabilities:[s],modified_at:s}"},
    {"ollama_error", "{error:s,param:s|~,code:s|~}"},
    {"error", "{error:{" REASON ",code:s|~," LENGTHS "}}"},
    {"message_error", "{type:\"error\",error:{" REASON "," LENGTHS "}}"},
};

/* ---- fields of requests ---------------------------------------------------------------------- */

/* Writes a schema for a number between `low` and `high`, or for one number if they are equal. */
static void write_number(const field *f, text *out) {
    text_print(out, "{\"type\":\"%s\"", f->shape[0] == 'i' ? "integer" : "number");
    if (f->low == f->high)
        text_print(out, ",\"const\":%.17g", f->low);
    else
        text_print(out, ",\"minimum\":%.17g,\"maximum\":%.17g", f->low, f->high);
    text_print(out, "}");
}

/* Every field may also be null, which means the same as leaving it out. */
static void write_field(const field *f, text *out) {
    text_quote(out, f->name, strlen(f->name));
    text_print(out, ":{\"anyOf\":[");
    if (strcmp(f->shape, "i") == 0 || strcmp(f->shape, "n") == 0)
        write_number(f, out);
    else
        shape_write(f->shape, out);
    text_print(out, ",{\"type\":\"null\"}]");
    if (field_why(f) != NULL) {
        text_print(out, ",\"description\":");
        text_quote(out, field_why(f), strlen(field_why(f)));
    }
    text_print(out, "}");
}

static void write_fields(ask_kind kind, bool gap, text *out) {
    const char *prompt = ask_prompt_field(kind);
    bool first = true;
    text_print(out, "{\"type\":\"object\",\"properties\":{");
    for (size_t i = 0; field_at(i) != NULL; i++) {
        const field *f = field_at(i);
        if ((f->kinds & kind) == 0)
            continue;
        text_add(out, ",", !first);
        first = false;
        if (strcmp(f->name, prompt) == 0 && !gap) {
            text_quote(out, f->name, strlen(f->name));
            text_add(out, ":", 1);
            shape_write(f->shape, out);
        } else {
            write_field(f, out);
        }
    }
    text_print(out, "},\"required\":[\"%s\"]}", gap ? "input_prefix\",\"input_suffix" : prompt);
}

/* Writes the fields of Ollama's interface: members of `options`, or those beside it. */
static void write_ollama_fields(unsigned kind, bool option, text *out) {
    bool first = true;
    text_print(out, "{\"type\":\"object\",\"properties\":{");
    for (size_t i = 0; ollama_field_at(i) != NULL; i++) {
        const ollama_field *f = ollama_field_at(i);
        if ((f->kinds & kind) == 0 || f->option != option)
            continue;
        text_add(out, ",", !first);
        first = false;
        text_quote(out, f->name, strlen(f->name));
        text_print(out, ":{\"anyOf\":[");
        if (strcmp(f->name, "options") == 0)
            write_ollama_fields(kind, true, out);
        else
            shape_write(f->shape, out);
        text_print(out, ",{\"type\":\"null\"}]}");
    }
    text_print(out, "}}");
}

/* ---- routes ---------------------------------------------------------------------------------- */

static void write_content(const char *type, const char *shape, text *out) {
    text_print(out, "\"content\":{\"%s\":{\"schema\":", type);
    shape_write(shape, out);
    text_print(out, "}");
}

static void write_responses(const route *r, text *out) {
    const bool message = r->kind == ASK_MESSAGE, ollama = strncmp(r->path, "/api/", 5) == 0;
    text_print(out, "\"responses\":{");
    if (r->reply != NULL) {
        text_print(out, "\"200\":{\"description\":\"%s\",", r->what);
        write_content(r->reply[0] == 's' ? "text/plain" : "application/json", r->reply, out);
        if (r->streams)
            text_print(out, ",\"%s\":{\"schema\":{\"type\":\"string\"}}",
                       ollama ? "application/x-ndjson" : "text/event-stream");
        text_print(out, "}},");
    }
    text_print(out, "\"default\":{\"description\":\"why there is no answer\",");
    write_content("application/json",
                  message  ? "@message_error"
                  : ollama ? "@ollama_error"
                           : "@error",
                  out);
    text_print(out, "}}}");
}

static void write_body(const route *r, text *out) {
    text_print(out, "\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{"
                    "\"schema\":");
    if (r->ollama != 0)
        write_ollama_fields(r->ollama, false, out);
    else if (r->kind != 0)
        write_fields(r->kind, r->gap, out);
    else
        shape_write(r->body, out);
    text_print(out, "}}},");
}

static void write_method(const route *r, text *out) {
    const char *method = strcmp(r->method, "GET") == 0      ? "get"
                         : strcmp(r->method, "DELETE") == 0 ? "delete"
                                                            : "post";
    text_print(out, "\"%s\":{\"summary\":\"%s\",", method, r->what);
    if (strchr(r->path, '*') != NULL) {
        text_print(out, "\"parameters\":[{\"name\":\"name\",\"in\":\"path\",\"required\":true,"
                        "\"schema\":{\"type\":\"string\"}}],");
    }
    if (!r->open)
        text_print(out, "\"security\":[{\"key\":[]},{}],");
    if (r->ollama != 0 || r->kind != 0 || r->body != NULL)
        write_body(r, out);
    write_responses(r, out);
    text_print(out, "}");
}

/* Writes all methods of the path of route i, unless a route before it has the same path. */
static void write_path(size_t i, text *out) {
    const char *path = route_at(i)->path, *star = strchr(path, '*');
    for (size_t k = 0; k < i; k++)
        if (route_at(k)->what != NULL && strcmp(route_at(k)->path, path) == 0)
            return;
    text_print(out, "%s\"%.*s%s%s\":{", i > 0 ? "," : "", (int)strcspn(path, "*"), path,
               star != NULL ? "{name}" : "", star != NULL ? star + 1 : "");
    for (size_t k = i; route_at(k) != NULL; k++) {
        if (route_at(k)->what == NULL || strcmp(route_at(k)->path, path) != 0)
            continue;
        text_add(out, ",", k > i);
        write_method(route_at(k), out);
    }
    text_print(out, "}");
}

static void describe_models(const server *s, text *out) {
    model_facts f;
    models_tell(s->models, models_at(s->models, 0), &f);
    if (models_count(s->models) == 1)
        text_print(out,
                   "Text of one model, whose answers have the system_fingerprint %s; /models names "
                   "it.",
                   f.fingerprint);
    else
        text_print(out, "Text of %zu models, which /models names.", models_count(s->models));
}

void page_openapi(server *s, http_exchange *x) {
    text t = {0}, about = {0};
    describe_models(s, &about);
    text_print(&t,
               "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"tern serve\",\"version\":\"%s\","
               "\"description\":\"%s "
               "All paths but / are there with /v1 before them too. Fields that "
               "are not listed are ignored, and named in tern.ignored.\"},"
               "\"paths\":{",
               tern_version(), about.bytes != NULL ? about.bytes : "");
    text_free(&about);
    for (size_t i = 0; route_at(i) != NULL; i++)
        if (route_at(i)->what != NULL)
            write_path(i, &t);
    text_print(&t, "},\"components\":{\"securitySchemes\":{\"key\":{\"type\":\"http\",\"scheme\":"
                   "\"bearer\"}},\"schemas\":{");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        text_print(&t, "%s\"%s\":", i > 0 ? "," : "", parts[i].name);
        shape_write(parts[i].shape, &t);
    }
    text_print(&t, "}}}");
    reply_with(x, 200, "application/json", &t);
}
