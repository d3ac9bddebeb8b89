// Judges requests by policies, one line after the other. In: [{policies, action, resource, context, principal}…]; out:
// what becomes of each.
const { runSimulation } = require('@cloud-copilot/iam-simulate')

const account = '123456789012'
// A key's own policy as AWS makes it: who may use the key is then said by policies of identities.
const keys = {
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { AWS: `arn:aws:iam::${account}:root` }, Action: 'kms:*', Resource: '*' }],
}

async function judge({ policies, action, resource, context, principal }) {
  const found = await runSimulation(
    {
      request: { principal, action, resource: { resource, accountId: account }, contextVariables: context },
      identityPolicies: policies.map((policy, at) => ({ name: `policy-${at}`, policy })),
      serviceControlPolicies: [],
      resourceControlPolicies: [],
      resourcePolicy: action.startsWith('kms:') ? keys : undefined,
    },
    {},
  )
  // Keys that the action does not know are left out of a request: AWS would not send them.
  const ignored = (found.result && found.result.ignoredContextKeys) || []
  return { result: found.resultType === 'error' ? 'error' : found.overallResult, errors: found.errors, ignored }
}

async function main() {
  for await (const line of require('readline').createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await Promise.all(JSON.parse(line).map(judge))) + '\n')
  }
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
