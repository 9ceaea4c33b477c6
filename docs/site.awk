# Rewrites the links of one page for the site.
#
# In: the page; `page`, its path; `pages`, the paths of all pages of the site; `source`, the address
# of the repository, or nothing. Out: the page. Links to other pages, to images and to other sites
# stay. Links to other files of the repository lead to `source`; without it, they become their text.
BEGIN {
    count = split(pages, list, /[ \n]+/)
    for (i = 1; i <= count; i++) in_site[list[i]] = 1
    folder = page
    if (!sub(/\/[^\/]*$/, "", folder)) folder = ""
}

# The path of a link in the repository.
function path_of(link, parts, n, i, out, depth) {
    sub(/#.*/, "", link)
    n = split((folder == "" ? "" : folder "/") link, parts, "/")
    depth = 0
    for (i = 1; i <= n; i++) {
        if (parts[i] == "..") depth--
        else if (parts[i] != "." && parts[i] != "") out[++depth] = parts[i]
    }
    link = ""
    for (i = 1; i <= depth; i++) link = link (i > 1 ? "/" : "") out[i]
    return link
}

function stays(link, path) {
    path = path_of(link)
    return link ~ /^#/ || link ~ /:\/\// || path in in_site || path ~ /^docs\/images\//
}

/^ *```/ { code = !code }
code { print; next }

{
    done = ""
    rest = $0
    while (match(rest, /\]\([^()]*\)/)) {
        link = substr(rest, RSTART + 2, RLENGTH - 3)
        before = substr(rest, 1, RSTART - 1)
        behind = substr(rest, RSTART + RLENGTH)
        if (stays(link)) {
            # A README becomes the first page of its folder.
            if (path_of(link) in in_site) sub(/README\.md/, "index.md", link)
            done = done before "](" link ")"
        }
        else if (source != "") done = done before "](" source "/blob/HEAD/" path_of(link) ")"
        else {
            # The text of the link begins at the last bracket that is open.
            opened = 0
            for (i = length(before); i > 0 && !opened; i--) if (substr(before, i, 1) == "[") opened = i
            done = done substr(before, 1, opened - 1) substr(before, opened + 1)
        }
        rest = behind
    }
    print done rest
}
